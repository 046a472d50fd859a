package offsets

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/source"
)

// A process sleeps for longer than its session, with records in its producer. When it wakes up and the group
// confirms it again, nothing of the hold of before is sent, by no connection; a new acquisition writes.
func TestLapsedLeaseSendsNothing(t *testing.T) {
	cfg, ctx := cluster(t)
	cfg.Transactional, cfg.Session = false, NewSession(10*time.Second)
	v := viewOf(t, cfg)
	if _, err := Acquire(ctx, cfg, v, 1); !errors.Is(err, ErrLapsed) {
		t.Errorf("acquired before the group has confirmed: %v", err)
	}
	start := time.Now()
	cfg.Session.confirm(start)
	l := acquire(t, ctx, cfg, v, "a")
	produce(t, ctx, l, "in the buffers")
	cfg.Session.confirm(start.Add(11 * time.Second)) // the first one after the pause
	if err := l.Check(); !errors.Is(err, ErrLapsed) {
		t.Errorf("after a lapse: %v", err)
	}
	if err := openTx(l).Commit(ctx, l.Cursor(), nil); !errors.Is(err, ErrLapsed) {
		t.Errorf("commit: %v", err)
	}
	soon, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
	defer cancel()
	if err := l.cl.Flush(soon); err == nil { // as kgo's own goroutines do, without asking us
		t.Error("a connection has sent what was in the buffers")
	}
	if n := records(t, ctx, cfg, dataTopic); n != 0 {
		t.Errorf("%d records of before the lapse are in the topic", n)
	}
	again := acquire(t, ctx, cfg, v, "a")
	produce(t, ctx, again, "of the new hold")
	if err := openTx(again).Commit(ctx, again.Cursor(), nil); err != nil {
		t.Error(err)
	}
	if n := records(t, ctx, cfg, dataTopic); n != 1 {
		t.Errorf("%d records", n)
	}
}

// A lease that lapses while it waits for the brokers ends, although the group leaves it to this instance: nobody else
// would end it.
func TestLapseEndsAFlush(t *testing.T) {
	cfg, ctx := cluster(t)
	cfg.Transactional, cfg.Session = false, NewSession(10*time.Second)
	v := viewOf(t, cfg)
	start := time.Now()
	cfg.Session.confirm(start)
	l := acquire(t, ctx, cfg, v, "a")
	produce(t, ctx, l, "in the buffers")
	checked := l.alive
	l.alive = func() error { // the lapse comes right behind the check
		cfg.Session.confirm(start.Add(11 * time.Second))
		l.alive = checked
		return nil
	}
	if err := openTx(l).Flush(ctx); !errors.Is(err, ErrLapsed) {
		t.Errorf("flush: %v", err)
	}
}

// records counts what is in a topic.
func records(t *testing.T, ctx context.Context, cfg *Config, topic string) (n int64) {
	t.Helper()
	cl, err := kgo.NewClient(cfg.Client...)
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	ends, err := kadm.NewClient(cl).ListEndOffsets(ctx, topic)
	if err != nil {
		t.Fatal(err)
	}
	ends.Each(func(o kadm.ListedOffset) { n += o.Offset })
	return n
}

// Without transactions a document of an older term never counts, wherever it stands; it leaves a mark until a move
// has settled it.
func TestStaleDocuments(t *testing.T) {
	cfg, ctx := cluster(t)
	cfg.Transactional = false
	v := viewOf(t, cfg)
	seg := segment(t, "2026/01/31/1200")
	keeper, err := Acquire(ctx, cfg, v, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer keeper.Close(ctx)
	if err := openTx(keeper).Commit(ctx, nil, &Frontier{Completed: segment(t, "2026/01/31/1100"), Current: seg,
		Resolved: "5.0000000000"}); err != nil {
		t.Fatal(err)
	}
	former := acquire(t, ctx, cfg, v, "former")
	owner := acquire(t, ctx, cfg, v, "owner")
	c := owner.Cursor()
	c.Finish(seg)
	if err := openTx(owner).Commit(ctx, c, nil); err != nil {
		t.Fatal(err)
	}
	late := former.Cursor()
	late.Finish(segment(t, "2026/01/31/1000"))
	if err := openTx(former).Commit(ctx, late, nil); !errors.Is(err, ErrFenced) {
		t.Errorf("the commit of a document that does not count: %v", err)
	}
	s := stored(t, ctx, cfg)
	after, regressed := s.Regressed()
	if !s.Cursor(1).Finished(seg) || !regressed || after.String() != "2026/01/31/0959" {
		t.Errorf("cursor %+v, delivery repeated after %q (%t)", s.Cursor(1), after, regressed)
	}
	f := s.Repair(after)
	if f.Epoch != 1 || !f.Moving || f.Completed != after || f.Current != (source.Segment{}) ||
		f.Resolved != "5.0000000000" {
		t.Errorf("repaired by %+v", f)
	}
	if err := openTx(keeper).Commit(ctx, nil, f); err != nil {
		t.Fatal(err)
	}
	s = stored(t, ctx, cfg)
	if _, regressed := s.Regressed(); regressed || s.Entered() {
		t.Errorf("after the repair: regressed %t, entered %t", regressed, s.Entered())
	}
	if _, err := owner.view.Await(ctx, func(s *State) bool { return s.Epoch == 1 }); err != nil {
		t.Fatal(err)
	}
	now, _, _ := owner.view.Get()
	if err := openTx(owner).Commit(ctx, now.Cursor(1), nil); err != nil {
		t.Fatal(err)
	}
	if s = stored(t, ctx, cfg); !s.Entered() {
		t.Error("the owner has not entered the epoch")
	}
}

// An acquisition waits for a transaction that is open in partition 0, and says so when it takes longer than one
// may be open. Then it holds the frontier of that transaction.
func TestAcquireSaysWhatItWaitsFor(t *testing.T) {
	cfg, ctx := cluster(t)
	v := viewOf(t, cfg)
	keeper, err := Acquire(ctx, cfg, v, 0)
	if err != nil {
		t.Fatal(err)
	}
	r, err := keeper.document(keyFrontier, &Frontier{Version: Version, Epoch: 7})
	if err != nil {
		t.Fatal(err)
	}
	if err := openTx(keeper).Mark(ctx, []*kgo.Record{r}); err != nil {
		t.Fatal(err)
	}
	if err := openTx(keeper).Flush(ctx); err != nil { // and its transaction stays open
		t.Fatal(err)
	}
	waiting := make(chan string, 1)
	slow := *cfg
	slow.TxnTimeout, slow.Waiting = 100*time.Millisecond, func(what string) { waiting <- what }
	acquired := make(chan *Lease, 1)
	go func() {
		l, err := Acquire(ctx, &slow, v, 1)
		if err != nil {
			t.Error(err)
		}
		acquired <- l
	}()
	if what := <-waiting; !strings.HasPrefix(what, "reading partition 0 of "+stateTopic) {
		t.Errorf("it waits for %q", what)
	}
	select {
	case <-acquired:
		t.Fatal("acquired, though partition 0 is undecided")
	default:
	}
	if err := keeper.end(ctx, "test"); err != nil {
		t.Fatal(err)
	}
	l := <-acquired
	defer l.Close(ctx)
	if l.State().Epoch != 7 { // I10
		t.Errorf("it holds the lease with epoch %d", l.State().Epoch)
	}
	keeper.Close(ctx)
}
