package offsets

import (
	"context"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/internal/testing/fakebroker"
)

// What is written beside the leases is in the partition of the frontier: a view that has read it knows of all.
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
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second) // records elsewhere would not come
	defer cancel()
	s, err := ReadTo(ctx, stateTopic, []int64{2, 0, 0, 0}, kgo.SeedBrokers(c.ListenAddrs()...))
	if err != nil || s.request == nil || s.Delivered == nil {
		t.Errorf("%v, %+v", err, s)
	}
}

// What was reported as delivered is no news once another instance or a request has come.
func TestDelivered(t *testing.T) {
	for name, c := range map[string]struct {
		after func(*tornLog)
		holds bool
	}{
		"nothing":             {func(*tornLog) {}, true},
		"an owner of lease 0": {func(l *tornLog) { l.owner(0, 6) }, false},
		"a request": {
			func(l *tornLog) { l.add(0, 6, keyRequest, Request{Version: Version}, false) }, false,
		},
	} {
		l := &tornLog{t, make([]int64, 2), NewView("t", 2)}
		l.add(0, 5, keyDelivered, Delivered{Version: Version, Owner: "a"}, false)
		c.after(l)
		if s, _, _ := l.view.Get(); s.Delivered != nil != c.holds {
			t.Errorf("after %s: %+v", name, s.Delivered)
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
