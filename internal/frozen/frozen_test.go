package frozen

import (
	"maps"
	"strings"
	"testing"

	"blobfeed/offsets"
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
		o := Settings{Bridge: "b", Feed: "feed", Values: maps.Clone(stored), Follows: c.follows}
		maps.Copy(o.Values, c.now)
		got := ""
		state := &offsets.State{
			Frontier: &offsets.Frontier{Feed: "feed", Settings: stored},
			Cursors:  []*offsets.Cursor{nil, {Counts: offsets.Counts{Emitted: 1}}},
		}
		if err := o.Fit(state); err != nil {
			got, _, _ = strings.Cut(err.Error(), " or restart")
		}
		if got != c.want {
			t.Errorf("%s: %s\nwant %s", name, got, c.want)
		}
	}
}

// Without a record, the way out is a reset, with nothing delivered a second time. A directory at another path may be
// the same feed, which only people know.
func TestWaysOut(t *testing.T) {
	const again, reset = "or restart from scratch with bridge reset, or with another BRIDGE_NAME and BRIDGE_TOPIC",
		"or, since no record is written yet, stop the bridge, run BRIDGE_NAME=b bridge reset --yes, and start it again"
	const link = "or, if this is the same feed at another path, keep the former path as well (ln -s /new /old), "
	for name, tc := range map[string]struct {
		feed, now, format string
		counts            offsets.Counts
		want, not         string
	}{
		"nothing read": {
			"f", "f", "avro", offsets.Counts{}, "was first started with json: set it back, " + reset, again,
		},
		"all filtered": {"f", "f", "avro", offsets.Counts{Read: 9, Filtered: 9}, reset, again},
		"a record": {
			"f", "f", "avro", offsets.Counts{Emitted: 1}, "written with json: set it back, " + again, reset,
		},
		"a dead letter":     {"f", "f", "avro", offsets.Counts{DeadLettered: 1}, again, reset},
		"a row of a scan":   {"f", "f", "avro", offsets.Counts{Scanned: 1}, again, reset},
		"another account":   {"x", "y", "json", offsets.Counts{}, "set it back, " + reset, "ln -s"},
		"another directory": {"file:///old", "file:///new", "json", offsets.Counts{Emitted: 1}, link + again, reset},
		"a quote in a path": {"file:///o'x", "file:///a b", "json", offsets.Counts{}, `(ln -s '/a b' '/o'\''x')`, again},
		"path in use":       {"file://" + t.TempDir(), "file:///n", "json", offsets.Counts{}, reset, "ln -s"},
		"now an account":    {"file:///old", "y", "json", offsets.Counts{Emitted: 1}, "set it back, " + again, "ln -s"},
	} {
		o := Settings{Bridge: "b", Feed: tc.now, Values: map[string]string{"BRIDGE_FORMAT": tc.format}}
		err := o.Fit(&offsets.State{
			Frontier: &offsets.Frontier{Feed: tc.feed, Settings: map[string]string{"BRIDGE_FORMAT": "json"}},
			Cursors:  []*offsets.Cursor{nil, {Counts: tc.counts}},
		})
		if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), tc.not) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
