package offsets

import (
	"context"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/internal/fakebroker"
)

// What is written beside the leases is in the partition of the frontier: who has read that one knows of all.
func TestWrittenBesideTheFrontier(t *testing.T) {
	c := fakebroker.New(t)
	cl := fakebroker.Client(t, c)
	createState(t, t.Context(), kadm.NewClient(cl))
	if err := Ask(t.Context(), cl, stateTopic, Request{ID: "a"}); err != nil {
		t.Fatal(err)
	}
	if err := Report(t.Context(), cl, stateTopic, Delivered{Owner: "a"}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second) // of records elsewhere it would wait for ever
	defer cancel()
	s, err := ReadTo(ctx, stateTopic, []int64{2, 0, 0, 0}, kgo.SeedBrokers(c.ListenAddrs()...))
	if err != nil || s.request == nil || s.Delivered == nil {
		t.Errorf("%v, %+v", err, s)
	}
}

// What was reported as delivered is no news once there is more to do: an instance that stays, a request, a commit.
func TestDelivered(t *testing.T) {
	at := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		after func(*tornLog)
		holds bool
	}{
		"nothing":                       {func(*tornLog) {}, true},
		"another run --once":            {func(l *tornLog) { l.add(0, 6, keyOwner, owner{Version: Version, Once: true}, false) }, true},
		"an instance that stays":        {func(l *tornLog) { l.owner(0, 6) }, false},
		"a request":                     {func(l *tornLog) { l.add(0, 6, keyRequest, Request{Version: Version}, false) }, false},
		"a commit of a lease":           {func(l *tornLog) { l.cursor(1, 5, Cursor{Time: at.Add(time.Second)}) }, false},
		"a commit of the frontier":      {func(l *tornLog) { l.frontier(6, Frontier{Time: at.Add(time.Second)}) }, false},
		"a commit of a lease before it": {func(l *tornLog) { l.cursor(1, 5, Cursor{Time: at.Add(-time.Second)}) }, true},
	} {
		l := &tornLog{t, make([]int64, 2), NewView("t", 2)}
		l.add(0, 5, keyDelivered, Delivered{Version: Version, Owner: "a", Time: at}, false)
		c.after(l)
		s, _, _ := l.view.Get()
		if holds := s.Delivered != nil && s.Delivered.Last(s); holds != c.holds {
			t.Errorf("after %s: %t", name, holds)
		}
	}
}

// The report stands between two transactions of a lease, and hides nothing of them.
func TestDeliveredBesideATornTransaction(t *testing.T) {
	l := &tornLog{t, make([]int64, 1), NewView("t", 1)}
	l.cursor(0, 5, Cursor{Counts: Counts{Read: 1}})
	l.end(0, 5)
	l.cursor(0, 6, Cursor{Counts: Counts{Read: 2}}) // without an end
	beside := &kgo.Record{Offset: l.next[0], Key: []byte(keyDelivered), Value: []byte(`{"version":2}`), ProducerID: 9}
	if err := l.view.apply(beside); err != nil {
		t.Fatal(err)
	}
	l.next[0]++
	l.owner(0, 7)
	if s, _, _ := l.view.Get(); s.Cursors[0].Counts.Read != 1 {
		t.Errorf("the transaction without an end counts: %+v", s.Cursors[0])
	}
}
