package bridge

import (
	"maps"
	"testing"

	"blobfeed/offsets"
	"blobfeed/source"
)

// Another hold of a lease, or of its scan, writes a topic as the records before were written (I5).
func TestRenewKeepsPins(t *testing.T) {
	seg := func(text string) source.Segment {
		s, err := source.ParseSegment(text)
		must(t, err)
		return s
	}
	last, current := seg("2026/01/01/0000"), seg("2026/01/01/0100")
	cursor := &offsets.Cursor{Pins: map[string]offsets.Pin{"known": {Partitions: 4}, "new": {Partitions: 4}}}
	frontier := &offsets.Frontier{Current: current, Topics: map[string]int32{"known": 6}}
	for name, c := range map[string]struct {
		segment source.Segment
		want    []string
	}{
		"found in this segment":                  {current, []string{"known", "new"}},
		"the last one, and grown since; by scan": {last, []string{"new"}},
		"by a scan, before the first event":      {source.Segment{}, []string{"new"}},
	} {
		cursor.Segment = c.segment
		want := map[string]offsets.Pin{}
		for _, topic := range c.want {
			want[topic] = offsets.Pin{Partitions: 4}
		}
		var topics openTopics
		topics.renew(cursor, frontier)
		got := map[string]offsets.Pin{}
		for topic := range cursor.Pins {
			if _, pin, pinned := topics.lookUp(topic); pinned {
				got[topic] = pin
			}
		}
		if !maps.Equal(got, want) {
			t.Errorf("%s: pins %v, want %v", name, got, want)
		}
		if len(cursor.Pins) != 2 {
			t.Fatalf("%s: the cursor has lost pins", name)
		}
	}
}
