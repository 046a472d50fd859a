package resolved

import (
	"testing"
	"time"

	"blobfeed/envelope"
	"blobfeed/offsets"
	"blobfeed/source"
)

func manifest(shards ...int) source.Manifest {
	begin := time.Date(2026, 1, 1, 10, 0, 0, 0, time.UTC)
	return source.Manifest{Segment: source.SegmentAt(begin), Begin: begin, Interval: time.Hour, Finalized: true, Shards: shards}
}

func TestComplete(t *testing.T) {
	m := manifest(0, 1, 4) // with three leases, 4 belongs to lease 1
	done := &offsets.Cursor{Segment: m.Segment, Done: true}
	working := &offsets.Cursor{Segment: m.Segment}
	before := &offsets.Cursor{Segment: source.SegmentAt(m.Begin.Add(-time.Hour)), Done: true}
	for name, c := range map[string]struct {
		cursors []*offsets.Cursor
		want    bool
	}{
		"all done":              {[]*offsets.Cursor{done, done, nil}, true},
		"one at work":           {[]*offsets.Cursor{done, working, nil}, false},
		"one not begun":         {[]*offsets.Cursor{nil, done, nil}, false},
		"one done with another": {[]*offsets.Cursor{done, before, done}, false},
	} {
		if got := Complete(m, &offsets.State{Cursors: c.cursors}); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	open := m
	open.Finalized = false
	if Complete(open, &offsets.State{Cursors: []*offsets.Cursor{done, done, done}}) {
		t.Error("an open segment is complete")
	}
	if !Complete(manifest(), &offsets.State{Cursors: []*offsets.Cursor{nil}}) {
		t.Error("a finalized segment without shards is not complete")
	}
}

// The promise is the end less the slack, and never falls (I6).
func TestAfter(t *testing.T) {
	m := manifest()
	end := m.Begin.Add(45 * time.Minute).UnixNano()
	if got := After(m, 15*time.Minute, envelope.Timestamp{}); got != (envelope.Timestamp{Wall: end}) {
		t.Errorf("%v", got)
	}
	higher := envelope.Timestamp{Wall: end, Logical: 1}
	if got := After(m, 15*time.Minute, higher); got != higher {
		t.Errorf("the promise fell to %v", got)
	}
}

// Every partition of every topic gets the marker.
func TestMarkers(t *testing.T) {
	enc, err := envelope.NewEncoder(envelope.Options{})
	if err != nil {
		t.Fatal(err)
	}
	records := Markers(map[string]int32{"b": 2, "a": 3}, func(string, int32) envelope.Record { return enc.Resolved(envelope.Timestamp{Wall: 1e18}) })
	want := []struct {
		topic     string
		partition int32
	}{{"a", 0}, {"a", 1}, {"a", 2}, {"b", 0}, {"b", 1}}
	if len(records) != len(want) {
		t.Fatalf("%d records", len(records))
	}
	for i, r := range records {
		if r.Topic != want[i].topic || r.Partition != want[i].partition || r.Key != nil || string(r.Value) != `{"resolved":"1000000000000000000.0000000000"}` || len(r.Headers) != 1 {
			t.Errorf("%d: %+v", i, r)
		}
	}
}
