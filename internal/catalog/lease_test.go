package catalog

import (
	"maps"
	"testing"
	"time"

	"blobfeed/envelope"
	"blobfeed/internal/pause"
	"blobfeed/internal/testing/fakebroker"
	"blobfeed/offsets"
	"blobfeed/source"
)

// Another tenure of a lease, or of its scan, writes a topic as the records before were written (I5).
func TestRenewKeepsPins(t *testing.T) {
	seg := func(text string) source.Segment {
		s, err := source.ParseSegment(text)
		if err != nil {
			t.Fatal(err)
		}
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
		var topics Topics
		topics.Renew(cursor, frontier)
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

// What an instance has admitted before a reset does not count against the limit of topics.
func TestLimitAfterAReset(t *testing.T) {
	topics := Topics{catalog: &Catalog{}, frontier: &offsets.Frontier{Born: 2}}
	topics.catalog.admitted.Store("before", int64(0))
	topics.catalog.admitted.Store("since", int64(2))
	pins := topics.allPins(&offsets.State{})
	if _, since := pins["since"]; len(pins) != 1 || !since || topics.found(&offsets.State{}, "before") {
		t.Errorf("%v", pins)
	}
}

// A topic that was opened before a reset, and deleted since, keeps no instance that runs on from its leases.
func TestOpenedBeforeAReset(t *testing.T) {
	brokers := fakebroker.New(t)
	names, err := envelope.NewTopics("{container}", "account")
	must(t, err)
	c := New(Options{Bridge: "test", Names: names}, fakebroker.Client(t, brokers))
	_, err = fakebroker.Admin(t, brokers).CreateTopic(t.Context(), 1, 1, nil, c.state())
	must(t, err)
	view := offsets.NewView(c.state(), 1)
	topics, err := c.ForLease(t.Context(), view)
	must(t, err)
	topics.Renew(&offsets.Cursor{}, &offsets.Frontier{Born: 1})
	topics.opens("gone")
	if _, err := c.ForLease(t.Context(), view); err != nil { // whose view has no frontier: it was taken away
		t.Error(err)
	}
	for born, want := range map[int64]int{1: 1, 2: 0} {
		if all := c.Written(&offsets.Frontier{Born: born}); len(all) != want {
			t.Errorf("born %d: %v", born, all)
		}
	}
}

// An opening whose limit was raised since does not end the tenure, which would begin again and again.
func TestLimitOfAnOpeningIsRaised(t *testing.T) {
	brokers := fakebroker.New(t)
	cl := fakebroker.Client(t, brokers)
	names, err := envelope.NewTopics("{container}", "account")
	if err != nil {
		t.Fatal(err)
	}
	c := New(Options{Bridge: "test", Names: names, Adopt: true, Now: time.Now}, cl)
	const name = "container-0000"
	rs, err := fakebroker.Admin(t, brokers).CreateTopics(t.Context(), 1, 1, nil, name, c.state())
	if err == nil {
		err = rs.Error()
	}
	if err != nil {
		t.Fatal(err)
	}
	c.openings.of[name] = &cached[opening]{
		turn: pause.NewTurn(), value: opening{partitions: 1, limit: 1}, made: time.Now(),
	}
	topics, err := c.ForLease(t.Context(), offsets.NewView(c.state(), 1))
	if err != nil {
		t.Fatal(err)
	}
	topics.Renew(&offsets.Cursor{}, &offsets.Frontier{})
	if n, err := topics.openNewTopic(t.Context(), name); n != 1 || err != nil {
		t.Errorf("%d partitions, %v", n, err)
	}
}
