package bridge

import (
	"maps"
	"strings"
	"testing"
)

// The error names every setting that the user changed, and none whose value only follows from one of them.
func TestChangedSettings(t *testing.T) {
	stored := map[string]string{"BRIDGE_FORMAT": "json", "BRIDGE_KEY_FORMAT": "json_array", "BRIDGE_EVENTS": "state",
		"BRIDGE_ENVELOPE": "wrapped", "BRIDGE_RESOLVED_TO": "inline", "BRIDGE_END_TIME": ""}
	follows := map[string]string{"BRIDGE_KEY_FORMAT": "BRIDGE_FORMAT", "BRIDGE_RESOLVED_TO": "BRIDGE_ENVELOPE"}
	for name, c := range map[string]struct {
		now, follows map[string]string
		want         string // up to the remedy
	}{
		"the base of another": {
			map[string]string{"BRIDGE_FORMAT": "avro", "BRIDGE_KEY_FORMAT": "avro"}, follows,
			"BRIDGE_FORMAT=avro, but records were written with json: set it back,",
		},
		"both": {
			map[string]string{"BRIDGE_FORMAT": "avro", "BRIDGE_KEY_FORMAT": "avro"}, nil,
			"BRIDGE_FORMAT=avro, but records were written with json; " +
				"BRIDGE_KEY_FORMAT=avro, but records were written with json_array: set them back,",
		},
		"left out, and set before": {
			map[string]string{"BRIDGE_KEY_FORMAT": "string"}, follows,
			"BRIDGE_KEY_FORMAT=string (from BRIDGE_FORMAT), but records were written with json_array: set it back,",
		},
		"of a preset": {
			map[string]string{"BRIDGE_EVENTS": "all"}, map[string]string{"BRIDGE_EVENTS": "BRIDGE_PRESET"},
			"BRIDGE_EVENTS=all (from BRIDGE_PRESET), but records were written with state: set it back,",
		},
		"not set before": {
			map[string]string{"BRIDGE_END_TIME": "2026-01-31T12:00:00Z"}, follows,
			"BRIDGE_END_TIME=2026-01-31T12:00:00Z, but records were written without it: set it back,",
		},
		"none": {nil, follows, ""},
	} {
		o := Options{Name: "b", FeedID: "feed", Frozen: maps.Clone(stored), Follows: c.follows}
		maps.Copy(o.Frozen, c.now)
		got := ""
		if err := o.Compatible("feed", stored); err != nil {
			got, _, _ = strings.Cut(err.Error(), " or restart")
		}
		if got != c.want {
			t.Errorf("%s: %s\nwant %s", name, got, c.want)
		}
	}
}
