package bridge

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"blobfeed/internal/history"
	"blobfeed/offsets"
	"blobfeed/source"
	"blobfeed/source/inventory"
)

// onCommit is called for each commit of a lease, by its goroutine.
type onCommit func(Commit)

func (f onCommit) Committed(c Commit) { f(c) }

// No lease lists before every lease has stopped delivering: an event that is in memory would come behind a newer row.
func TestRoundWaitsForDelivery(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3, 50)
	c := broker(t)
	o := w.options(c)
	const busy = 1
	delivering, release := make(chan struct{}), make(chan struct{})
	released := sync.OnceFunc(func() { close(release) })
	defer released()
	delivers := sync.OnceFunc(func() { close(delivering) })
	o.Observer = append(o.Observer, onCommit(func(c Commit) {
		if c.Lease == busy && c.Read > 0 {
			delivers()
			<-release
		}
	}))
	var listed atomic.Int32
	w.store.Before = func(_ context.Context, op string, _ inventory.Query) error {
		if op == "list" {
			listed.Add(1)
		}
		return nil
	}
	w.change(100)
	w.publish(false)
	live(t, o)
	<-delivering
	ask(t, o, offsets.Request{ID: "all", Time: time.Now()})
	awaitState(t, o, "the other leases hold", func(s *offsets.State) bool {
		for lease, cursor := range s.Cursors {
			if scan := scanOf(s); !scan.Active() || lease != busy && cursor.Listing(scan).Held < scan.Round {
				return false
			}
		}
		return true
	})
	ask(t, o, offsets.Request{ID: "all", Time: time.Now(), Cancel: true})
	s := awaitState(t, o, "the coordinator has moved the frontier once more", func(s *offsets.State) bool {
		return scanOf(s) != nil && scanOf(s).Cancelled
	})
	if n := listed.Load(); scanOf(s).Phase != offsets.ScanHolds || n > 0 {
		t.Errorf("in phase %s, after %d requests", scanOf(s).Phase, n)
	}
	released()
	awaitState(t, o, "it is cancelled", isDone("all"))
	ask(t, o, offsets.Request{ID: "next", Time: time.Now()})
	awaitState(t, o, "another one is done", isDone("next"))
	w.compare(c)
}

// A seek cancels a scan: its leases begin at another place, and their listings are void.
func TestSeekCancelsScan(t *testing.T) {
	target, err := history.ParseTarget("earliest")
	must(t, err)
	f := offsets.Frontier{Scan: &offsets.Scan{ID: "a", Round: 2, Phase: offsets.ScanLists}}
	target.Move(&f)
	if f.Scan.Active() || !f.Scan.Cancelled || f.Scan.ID != "a" {
		t.Errorf("%+v", f.Scan)
	}
}

// Segments are completed between the rounds of a scan: it may take days.
func TestSegmentsCompleteBetweenRounds(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 4, 50)
	o := w.options(broker(t))
	live(t, o)
	awaitDrained(t, o, w)
	listed := make(chan struct{})
	w.store.Before = func(ctx context.Context, op string, _ inventory.Query) error {
		if op != "list" {
			return nil
		}
		select {
		case <-listed:
		case <-ctx.Done():
		}
		return ctx.Err()
	}
	ask(t, o, offsets.Request{ID: "slow", Time: time.Now()})
	awaitState(t, o, "a round is over", func(s *offsets.State) bool { return scanOf(s) != nil && scanOf(s).Round > 1 })
	w.change(50)
	w.publish(false)
	w.next()
	s := awaitState(t, o, "the segment is complete", func(s *offsets.State) bool {
		return s.Frontier != nil && s.Frontier.Current.String() == w.segment()
	})
	if !scanOf(s).Active() {
		t.Errorf("the scan is over: %+v", scanOf(s))
	}
	close(listed)
	awaitState(t, o, "the scan is done", isDone("slow"))
	w.change(50)
	w.publish(false)
	awaitDrained(t, o, w)
	s = awaitState(t, o, "all is delivered", func(s *offsets.State) bool { return scanOf(s) != nil })
	for lease, cursor := range s.Cursors {
		if cursor != nil && cursor.Segment == s.Frontier.Current && cursor.Scan != nil {
			t.Errorf("the cursor of lease %d still has the listing", lease)
		}
	}
}

// Events are delivered for as long as was listed, with limits.
func TestPause(t *testing.T) {
	began := time.Now()
	for took, want := range map[time.Duration]time.Duration{
		time.Millisecond: minPause, 3 * time.Second: 3 * time.Second, time.Hour: maxRound,
	} {
		r := &rounds{listsSince: began}
		if got := r.pause(began.Add(took)); got != want {
			t.Errorf("after %s: %s, want %s", took, got, want)
		}
	}
	if got := new(rounds).pause(began); got != minPause {
		t.Errorf("behind an initial scan: %s", got)
	}
}

// A listing ends when its scan is cancelled, and when a move has taken the scan away.
func TestEndOfAListing(t *testing.T) {
	scan := &offsets.Scan{ID: "a", Round: 1, Phase: offsets.ScanLists}
	cancelled := *scan
	cancelled.Cancelled = true
	for name, c := range map[string]struct {
		frontier *offsets.Frontier
		ends     bool
	}{
		"it is under way": {&offsets.Frontier{Scan: scan}, false},
		"it is cancelled": {&offsets.Frontier{Scan: &cancelled}, true},
		"a seek ended it": {&offsets.Frontier{Scan: scan.Cancel(time.Now())}, true},
		"a reset":         {nil, true},
		"a first start":   {&offsets.Frontier{}, true},
	} {
		now, _, err := offsets.NewView("state", 2).Get()
		must(t, err)
		before, after := *now, *now
		before.Frontier, after.Frontier = &offsets.Frontier{Scan: scan}, c.frontier
		if ends := taskOf(&before, 1, true) != taskOf(&after, 1, true); ends != c.ends {
			t.Errorf("%s: it ends: %t", name, ends)
		}
	}
}

// A lease that has nothing to do in a round waits for its end.
func TestNothingToDoInARound(t *testing.T) {
	now, _, err := offsets.NewView("state", 2).Get()
	must(t, err)
	s, segment := *now, source.SegmentAt(hourOf(0))
	s.Frontier = &offsets.Frontier{Current: segment, Shards: []int{1},
		Scan: &offsets.Scan{ID: "a", Round: 1, Phase: offsets.ScanHolds}}
	s.Cursors = []*offsets.Cursor{nil, {Scan: &offsets.Listing{ID: "a", Held: 1}}}
	// Reading the segment would panic.
	h := &tenure{instance: &instance{leases: 2}, opts: &Options{}, findings: &findings{}, p: 1}
	if do, err := h.awaitWork(&s); do != todoWait || err != nil {
		t.Errorf("%v, %v", do, err)
	}
}
