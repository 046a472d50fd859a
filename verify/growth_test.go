package verify

import (
	"strings"
	"testing"
)

// Behind the marker of a growth, and only there, keys are spread over more partitions: on each partition by itself.
func TestKeysMoveAtTheirMarker(t *testing.T) {
	const key = `["photos/1.jpg"]`
	// Where the key is with two partitions, with three, and with four: three different places.
	of := func(_ []byte, partitions int) int32 { return map[int]int32{2: 0, 3: 2, 4: 3}[partitions] }
	at := func(p int32) Record { return Record{Topic: "t", Partition: p, Key: []byte(key)} }
	marker := func(p int32, segment int, seek string) Record {
		r := mark(p, segment)
		r.Topic = "t"
		if seek != "" {
			r.Headers = append(r.Headers, Header{"seek", []byte(seek)})
		}
		return r
	}
	grown := func(again bool, to ...int) *Partition {
		var steps []Growth
		for i, n := range to {
			steps = append(steps, Growth{Partitions: n, Resolved: resolvedAt(i + 1)})
		}
		p := NewPartition(2, of, steps...)
		p.Repeats = again
		return p
	}
	for name, c := range map[string]struct {
		v       *Partition
		records []Record
		found   string
	}{
		"before and behind":         {grown(false, 3), []Record{at(0), marker(2, 1, ""), at(2)}, ""},
		"too late":                  {grown(false, 3), []Record{marker(0, 1, ""), at(0)}, "belongs to partition 2"},
		"too early":                 {grown(false, 3), []Record{marker(2, 0, ""), at(2)}, "belongs to partition 0"},
		"the marker is missing":     {grown(false, 3), []Record{marker(0, 2, ""), at(0)}, "belongs to partition 2"},
		"repeated":                  {grown(true, 3), []Record{marker(0, 1, ""), at(0)}, ""},
		"repeated where it was not": {grown(true, 3), []Record{marker(1, 1, ""), at(1)}, "belongs to partition 2"},
		"grown twice": {grown(false, 3, 4), []Record{at(0), marker(2, 1, ""), at(2),
			marker(3, 2, ""), at(3)}, ""},
		"at a seek": {NewPartition(2, of, Growth{3, resolvedAt(1), "1 2", false}),
			[]Record{marker(0, 1, ""), at(0), marker(2, 1, "1 2"), at(2)}, ""},
		"before the seek": {NewPartition(2, of, Growth{3, resolvedAt(1), "1 2", false}),
			[]Record{marker(2, 1, ""), at(2)}, "belongs to partition 0"},
		"vague": {NewPartition(2, of, Growth{4, resolvedAt(2), "", true}),
			[]Record{at(0), at(2), at(3), marker(3, 2, ""), at(3)}, ""},
		"no longer vague": {NewPartition(2, of, Growth{4, resolvedAt(2), "", true}),
			[]Record{marker(2, 2, ""), at(2)}, "belongs to partition 3"},
	} {
		for _, r := range c.records {
			c.v.Note(r)
		}
		if found := text(c.v.Failures()); (c.found == "") != (found == "") || !strings.Contains(found, c.found) {
			t.Errorf("%s: %q, want %q", name, found, c.found)
		}
	}
}
