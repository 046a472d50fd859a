package resolved

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/envelope"
	"blobfeed/offsets"
	"blobfeed/source"
)

func manifest(shards ...int) source.Manifest {
	begin := time.Date(2026, 1, 1, 10, 0, 0, 0, time.UTC)
	return source.Manifest{
		Segment:   source.SegmentAt(begin),
		Begin:     begin,
		Interval:  time.Hour,
		Finalized: true,
		Shards:    shards,
	}
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
	m := Marker{At: envelope.Timestamp{Wall: 1e18}}
	records := m.Records(map[string]int32{"b": 2, "a": 3}, map[string]*envelope.Encoder{"a": enc, "b": enc})
	want := []struct {
		topic     string
		partition int32
	}{{"a", 0}, {"a", 1}, {"a", 2}, {"b", 0}, {"b", 1}}
	if len(records) != len(want) {
		t.Fatalf("%d records", len(records))
	}
	for i, r := range records {
		if r.Topic != want[i].topic || r.Partition != want[i].partition || r.Key != nil ||
			string(r.Value) != `{"resolved":"1000000000000000000.0000000000"}` || len(r.Headers) != 1 {
			t.Errorf("%d: %+v", i, r)
		}
	}
}

// A marker in a topic of its own says where its records end, and each announcement is a header.
func TestMarkersInTheirTopic(t *testing.T) {
	enc, err := envelope.NewEncoder(envelope.Options{Markers: envelope.MarkersTopic})
	if err != nil {
		t.Fatal(err)
	}
	from, to := source.SegmentAt(manifest().Begin), source.SegmentAt(manifest().Begin.Add(time.Hour))
	m := Marker{
		At: envelope.Timestamp{
			Wall: 1e18,
		}, Feed: "f", Seek: &offsets.Seek{To: "earliest"}, Gap: &offsets.Gap{From: from, To: to},
		Extra: []kgo.RecordHeader{{Key: "epoch", Value: []byte("3")}},
		End:   func(_ string, partition int32) int64 { return int64(partition) + 7 },
	}
	records := m.Records(map[string]int32{"a": 2}, map[string]*envelope.Encoder{"a": enc})
	for p, r := range records {
		got := map[string]string{}
		for _, h := range r.Headers {
			got[h.Key] = string(h.Value)
		}
		delete(got, "resolved")
		want := map[string]string{"feed": "f", "seek": "- earliest", "gap": from.String() + " " + to.String(),
			"epoch": "3"}
		value := fmt.Sprintf(`{"resolved":"1000000000000000000.0000000000","partition":%d,"offset":%d}`, p, p+7)
		if r.Topic != "a.resolved" || string(r.Value) != value || !maps.Equal(got, want) {
			t.Errorf("%s: %s %v", r.Topic, r.Value, got)
		}
	}
	if len(records) != 2 || Count(map[string]int32{"a": 2, "b": 3}) != 5 {
		t.Errorf("%d records", len(records))
	}
	m = Marker{Seek: &offsets.Seek{Told: true}}
	if h := m.headers(); len(h) != 0 {
		t.Errorf("%v", h)
	}
}

// END_TIME is reached by the first segment behind it, and by the one whose marker equals it.
func TestEnd(t *testing.T) {
	m := manifest() // 10:00 to 11:00
	end := End{Wall: m.Begin.Add(45 * time.Minute).UnixNano()}
	for moment, want := range map[time.Duration]bool{59 * time.Minute: false, 60 * time.Minute: true} {
		if got := end.Reached(m.Begin.Add(moment)); got != want {
			t.Errorf("%s: %v", moment, got)
		}
	}
	late := End{Wall: m.Begin.Add(2 * time.Hour).UnixNano()}
	if !end.Within(m) || late.Within(m) || (End{}).Within(m) || (End{}).Reached(m.Begin) {
		t.Error("the wrong segment may be the last")
	}
}

// Until the initial scan has listed everything, and for the slack behind it, no marker is promised, also if
// another scan has taken its place.
func TestBarred(t *testing.T) {
	initial := &offsets.Scan{Initial: true, Listed: "1000.0000000000", Done: true}
	for name, c := range map[string]struct {
		scan *offsets.Scan
		at   int64
		want bool
	}{
		"no scan":               {nil, 1, false},
		"not listed yet":        {&offsets.Scan{Initial: true}, 1 << 60, true},
		"before the listing":    {initial, 999, true},
		"within the slack":      {initial, 1009, true},
		"behind it":             {initial, 1010, false},
		"a scan after it":       {&offsets.Scan{Bar: initial.Listed}, 1009, true},
		"behind it, with other": {&offsets.Scan{Bar: initial.Listed, Listed: "5000.0000000000"}, 1010, false},
		"a scan without it":     {&offsets.Scan{Listed: "5000.0000000000"}, 1, false},
		"nothing but the scan":  {&offsets.Scan{Initial: true, Only: true, Listed: initial.Listed}, 1000, false},
	} {
		if got := Barred(envelope.Timestamp{Wall: c.at}, c.scan, 10); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
