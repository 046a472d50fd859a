package setup

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"blobfeed/envelope"
	"blobfeed/internal/config"
)

func presetEnvironment(t *testing.T, settings string) {
	t.Helper()
	env := map[string]string{"BRIDGE_SOURCE_URL": "file://" + t.TempDir(), "BRIDGE_KAFKA_BROKERS": "a:1",
		"BRIDGE_REGISTRY_URL": "http://r"}
	for _, s := range strings.Fields(settings) {
		name, value, _ := strings.Cut(s, "=")
		env["BRIDGE_"+name] = value
	}
	setVariables(t, env)
}

// A preset makes the form of records, unless a setting says otherwise. Only table makes a table.
func TestPresets(t *testing.T) {
	for settings, want := range map[string]struct {
		envelope string
		table    bool
		change   func(*envelope.Options)
	}{
		"PRESET=table": {"row", true, func(o *envelope.Options) {
			o.KeyFormat, o.Markers, o.Maps, o.Updated = envelope.KeyString, envelope.MarkersTopic, envelope.MapsJSON, false
		}},
		"PRESET=table MAPS=native RESOLVED_TO=off OPTIONS=updated": {"row", true, func(o *envelope.Options) {
			o.KeyFormat, o.Markers = envelope.KeyString, envelope.MarkersOff
		}},
		"PRESET=debezium": {"enriched", false, func(o *envelope.Options) {
			o.KeyFormat, o.Deletes, o.Maps = envelope.KeyString, envelope.DeletesBoth, envelope.MapsJSON
			o.Properties = envelope.Source | envelope.Schema
		}},
		"PRESET=debezium FORMAT=avro DELETES=envelope": {"enriched", false, func(o *envelope.Options) {
			o.Maps = envelope.MapsJSON
		}},
		"PRESET=log,event_hubs": {"wrapped", false, func(o *envelope.Options) { o.Events = envelope.EventsAll }},
	} {
		presetEnvironment(t, settings)
		c, err := Examined(config.Environ().Load(true))
		if err != nil {
			t.Errorf("%s: %v", settings, err)
			continue
		}
		var f envelope.Format
		var e envelope.Envelope
		_, _ = f.UnmarshalText([]byte(c.Format)), e.UnmarshalText([]byte(want.envelope))
		expected := envelope.Defaults(f, e)
		want.change(&expected)
		record, _ := Record(c)
		if got, want := form(record), form(expected); got != want {
			t.Errorf("%s:\n%s, want\n%s", settings, got, want)
		}
		if o, err := Options(c, Observe{}); err != nil || o.Topics.Create.Table != want.table {
			t.Errorf("%s: table %t, %v", settings, o.Topics.Create.Table, err)
		}
		at := slices.IndexFunc(c.Effective(), func(e config.Effective) bool { return e.Name == "BRIDGE_DELETES" })
		if from := c.Effective()[at].From; (from != "environment") == strings.Contains(settings, "DELETES") ||
			from == "default" {
			t.Errorf("%s: BRIDGE_DELETES comes from %s", settings, from)
		}
	}
}

// form is the form of records as a text.
func form(o envelope.Options) string {
	o.Register, o.Now = nil, nil
	return fmt.Sprintf("%+v", o)
}

// What contradicts a preset would make it something else in silence.
func TestPresetProblems(t *testing.T) {
	for settings, want := range map[string]string{
		"PRESET=table ENVELOPE=wrapped":   "BRIDGE_ENVELOPE: BRIDGE_PRESET=table needs row: remove one of the two settings",
		"PRESET=table FORMAT=avro":        "BRIDGE_FORMAT: BRIDGE_PRESET=table needs json",
		"PRESET=table RESOLVED_TO=inline": "BRIDGE_RESOLVED_TO: BRIDGE_PRESET=table needs topic or off",
		"PRESET=debezium ENVELOPE=row":    "BRIDGE_ENVELOPE: BRIDGE_PRESET=debezium needs enriched",
		"PRESET=log EVENTS=state":         "BRIDGE_EVENTS: BRIDGE_PRESET=log needs all",
		"PRESET=log,table":                "BRIDGE_PRESET: want at most one of table, debezium, log",
		"PRESET=kafka":                    `BRIDGE_PRESET: invalid value "kafka": want one or more of table, debezium`,
		"KAFKA_PRESET=event_hubs":         "BRIDGE_KAFKA_PRESET: replaced: use BRIDGE_PRESET",
	} {
		presetEnvironment(t, settings)
		if _, err := Examined(config.Environ().Load(true)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", settings, err, want)
		}
	}
}
