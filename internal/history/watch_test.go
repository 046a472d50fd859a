package history

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/internal/testing/fakebroker"
	"blobfeed/internal/testing/feedsim"
	"blobfeed/offsets"
	"blobfeed/source"
)

// After a reset there is no frontier for a while, and instances may run on.
func TestWatchAfterAReset(t *testing.T) {
	var h History
	w := Watcher{View: offsets.NewView("test.offsets", 1)}
	if reported, err := h.look(t.Context(), w, new(source.Segment), new(listing), true); reported || err != nil {
		t.Errorf("reported %v, %v", reported, err)
	}
}

// A seek goes back behind what was listed, and the feed need not have a newer segment: it is listed again.
func TestWatchAfterASeek(t *testing.T) {
	t.Parallel()
	const state = "test.offsets"
	c := fakebroker.New(t)
	_, err := fakebroker.Admin(t, c).CreateTopic(t.Context(), 1, 1, nil, state)
	if err != nil {
		t.Fatal(err)
	}
	cl := fakebroker.Client(t, c)
	h := New(source.New(simulated(t, t.TempDir(), feedsim.Spec{Segments: 5, EventsPerSegment: 1}), source.Options{}), time.Second)
	w := Watcher{View: offsets.NewView(state, 1), Now: time.Now, Report: func(time.Duration, source.Segment) {}}
	go func() { _ = w.View.Run(t.Context(), kgo.SeedBrokers(c.ListenAddrs()...)) }()
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var oldest source.Segment
	var newest listing
	for _, step := range []struct{ completed, ahead int }{{3, 1}, {0, 4}, {1, 4}} { // in hours, the first is 0
		at := source.SegmentAt(begin.Add(time.Duration(step.completed) * time.Hour))
		value, err := json.Marshal(&offsets.Frontier{Version: 2, Completed: at})
		err = errors.Join(err, cl.ProduceSync(t.Context(), &kgo.Record{Topic: state, Key: []byte("frontier"), Value: value}).FirstErr())
		if err == nil {
			_, err = w.View.Await(t.Context(), func(s *offsets.State) bool { return s.Frontier != nil && s.Frontier.Completed == at })
		}
		if err == nil {
			_, err = h.look(t.Context(), w, &oldest, &newest, true)
		}
		if n := len(h.Ahead()); n != step.ahead || err != nil {
			t.Errorf("behind segment %d: %d segments, want %d, %v", step.completed, n, step.ahead, err)
		}
	}
}
