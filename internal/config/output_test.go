package config

import (
	"strings"
	"testing"

	"blobfeed/envelope"
)

// What is not set is as the envelope has it, and fits.
func TestOutputDefaults(t *testing.T) {
	base := map[string]string{"BRIDGE_SOURCE_URL": "file:///feed", "BRIDGE_KAFKA_BROKERS": "a:1", "BRIDGE_REGISTRY_URL": "http://r:1"}
	for _, f := range []string{"json", "avro"} {
		for _, e := range []string{"wrapped", "bare", "row", "deprecated_row", "key_only", "enriched"} {
			if f == "avro" && strings.HasSuffix(e, "row") {
				continue
			}
			set(t, base)
			t.Setenv("BRIDGE_FORMAT", f)
			t.Setenv("BRIDGE_ENVELOPE", e)
			c, err := Load(true)
			if err != nil {
				t.Fatalf("%s, %s: %v", f, e, err)
			}
			o, _ := c.Record()
			if want := (map[string]envelope.Markers{"enriched": envelope.MarkersTopic})[e]; o.Markers != want {
				t.Errorf("%s, %s: markers %s", f, e, o.Markers)
			}
			if want := (map[string]envelope.KeyFormat{"avro": envelope.KeyAvro})[f]; o.KeyFormat != want {
				t.Errorf("%s, %s: keys %s", f, e, o.KeyFormat)
			}
			if o.Updated != (e == "wrapped" || e == "enriched" || f == "json" && e != "key_only") {
				t.Errorf("%s, %s: updated %t", f, e, o.Updated)
			}
		}
	}
}

// Every setting of the output reaches the encoder's options.
func TestOutputSettings(t *testing.T) {
	set(t, map[string]string{
		"BRIDGE_SOURCE_URL": "file:///feed", "BRIDGE_KAFKA_BROKERS": "a:1", "BRIDGE_REGISTRY_URL": "http://r:1, https://s:2/path", "BRIDGE_FORMAT": "avro", "BRIDGE_ENVELOPE": "enriched",
		"BRIDGE_KEY_FORMAT": "string", "BRIDGE_UPDATED": "false", "BRIDGE_DIFF": "true", "BRIDGE_KEY_IN_VALUE": "false", "BRIDGE_TOPIC_IN_VALUE": "true",
		"BRIDGE_MVCC_TIMESTAMP": "true", "BRIDGE_ENRICHED_PROPERTIES": "source", "BRIDGE_BEFORE": "full", "BRIDGE_DELETES": "both", "BRIDGE_AVRO_TIMESTAMPS": "millis",
		"BRIDGE_RESOLVED_TO": "off", "BRIDGE_HEADERS": "none", "BRIDGE_EXTRA_HEADERS": "a=b=c,d=", "BRIDGE_TOPIC": "x.{container}", "BRIDGE_TOPIC_PREFIX": "p-",
	})
	c, err := Load(true)
	if err != nil {
		t.Fatal(err)
	}
	o, _ := c.Record()
	if o.Format != envelope.Avro || o.Envelope != envelope.Enriched || o.KeyFormat != envelope.KeyString || o.Updated || !o.Diff || o.KeyInValue || !o.TopicInValue ||
		!o.MVCCTimestamp || o.Properties != envelope.Source || o.Before != envelope.BeforeFull || o.Deletes != envelope.DeletesBoth || o.AvroTimestamps != envelope.Millis ||
		o.Markers != envelope.MarkersOff || o.Headers != envelope.HeadersNone || len(o.ExtraHeaders) != 2 || string(o.ExtraHeaders[0].Value) != "b=c" || o.ExtraHeaders[1].Key != "d" {
		t.Errorf("%+v", o)
	}
	topics, err := c.Topics("")
	if err != nil {
		t.Fatal(err)
	}
	if name, err := topics.Name("", "$web"); name != "p-x._u0024_web" || err != nil {
		t.Errorf("topic %s, %v", name, err)
	}
	if len(c.RegistryURL) != 2 || c.RegistryURL[1] != "https://s:2/path" {
		t.Errorf("registry %q", c.RegistryURL)
	}
}

// What does not fit is told in CockroachDB's words, what can't be read by the setting's name, all at once.
func TestOutputProblems(t *testing.T) {
	for _, c := range []struct {
		env  map[string]string
		says []string
	}{
		{map[string]string{"FORMAT": "avro"}, []string{"BRIDGE_REGISTRY_URL: required"}},
		{map[string]string{"FORMAT": "avro", "ENVELOPE": "row", "REGISTRY_URL": "r:8081"}, []string{"envelope=row is not supported with format=avro", "BRIDGE_REGISTRY_URL: want http://"}},
		{map[string]string{"ENVELOPE": "key_only", "UPDATED": "true", "DIFF": "true"},
			[]string{"updated is only usable with envelope=wrapped or envelope=enriched", "diff is only usable with"}},
		{map[string]string{"ENVELOPE": "round", "FORMAT": "xml", "DELETES": "never", "BEFORE": "x", "KEY_FORMAT": "y", "EVENTS": "z", "HEADERS": "h", "RESOLVED_TO": "nobody", "EXTRA_HEADERS": "x"},
			[]string{`BRIDGE_ENVELOPE: invalid value "round": want one of wrapped`, "BRIDGE_FORMAT", "BRIDGE_DELETES", "BRIDGE_BEFORE", "BRIDGE_KEY_FORMAT", "BRIDGE_EVENTS", "BRIDGE_HEADERS", "BRIDGE_RESOLVED_TO", "BRIDGE_EXTRA_HEADERS"}},
		{map[string]string{"TOPIC": "{blob}", "REGISTRY_URL": "http://me:hunter2@r:1"}, []string{`topic "{blob}"`, "REGISTRY_PASSWORD"}},
		{map[string]string{"HTTP_CERT_FILE": "c", "HTTP_HOSTS": "http://a"}, []string{"BRIDGE_HTTP_CERT_FILE: set it together with", "BRIDGE_HTTP_HOSTS: want host names"}},
		{map[string]string{"TOPIC_LIMIT": "10001"}, []string{"BRIDGE_TOPIC_LIMIT: want 1 to 10000"}},
		{map[string]string{"TOPIC": "blobfeed.dlq"}, []string{"of the bridge's own"}},
		{map[string]string{"NAME": "photos", "TOPIC": "photos.{container}"}, []string{"BRIDGE_TOPIC: records could go to photos.offsets", "records could go to photos.dlq"}},
		{map[string]string{"TOPIC": strings.Repeat("x", 200) + "{container}"}, []string{"BRIDGE_TOPIC: names of up to 2"}},
		{map[string]string{"REGISTRY_USERNAME": "me", "REGISTRY_TOKEN": "hunter2", "REGISTRY_CERT": "c"}, []string{"REGISTRY_PASSWORD", "BRIDGE_REGISTRY_TOKEN", "REGISTRY_KEY"}},
	} {
		env := map[string]string{"BRIDGE_SOURCE_URL": "file:///feed", "BRIDGE_KAFKA_BROKERS": "a:1"}
		for name, value := range c.env {
			env["BRIDGE_"+name] = value
		}
		t.Run("", func(t *testing.T) {
			set(t, env)
			_, err := Load(true)
			if err == nil {
				t.Fatalf("%v is accepted", c.env)
			}
			for _, text := range c.says {
				if !strings.Contains(err.Error(), text) {
					t.Errorf("%v: %v, want %s", c.env, err, text)
				}
			}
			if strings.Contains(err.Error(), "hunter2") {
				t.Errorf("a secret is shown: %v", err)
			}
		})
	}
}
