package bridge

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"blobfeed/internal/pause"
	"blobfeed/offsets"
	"blobfeed/source/inventory"
)

// The leases of an instance list one after another: each may use all requests, and their pages are in memory (I9).
func TestOneLeaseListsAtATime(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 8, 10)
	o := w.options(broker(t))
	o.Feed.InitialScan, o.Pace.ScanRequests = ScanYes, 1
	var asked atomic.Int32
	w.store.Before = func(ctx context.Context, _ string, _ inventory.Query) error {
		if n := asked.Add(1); n > 1 {
			t.Errorf("%d requests at a time", n)
		}
		defer asked.Add(-1)
		return pause.For(ctx, 5*time.Millisecond)
	}
	must(t, runOnce(t, o))
}

// falling is an account whose names fall.
type falling struct{ inventory.Store }

func (f falling) List(ctx context.Context, q inventory.Query) (*inventory.Page, error) {
	page, err := f.Store.List(ctx, q)
	if err == nil {
		slices.Reverse(page.Blobs)
	}
	return page, err
}

// A listing that cannot be right is reported, and the scan is not over.
func TestListingThatCannotBeRight(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2, 10)
	o := w.options(broker(t))
	o.Feed.InitialScan, o.Feed.Inventory = ScanYes, falling{w.store}
	live(t, o)
	w.recorder.awaitFailure(t, "not in ascending order")
	awaitState(t, o, "the scan is under way", func(s *offsets.State) bool { return scanOf(s).Active() })
}

// A request that fails is repeated, and costs neither the lease nor what is not committed yet.
func TestFailedRequestKeepsTheLease(t *testing.T) {
	t.Parallel()
	w, _, o := afterScan(t, 3, 50, func(o *Options) { o.Pace.ScanRound = time.Minute })
	fail := make(chan struct{})
	var asked atomic.Int32
	w.store.Before = func(_ context.Context, op string, _ inventory.Query) error {
		if op != "list" {
			return nil
		}
		<-fail
		if asked.Add(1)%2 == 1 {
			return errors.New("no route")
		}
		return nil
	}
	ask(t, o, offsets.Request{ID: "all", Time: time.Now()})
	before := awaitState(t, o, "all leases list", func(s *offsets.State) bool {
		return scanOf(s).Lists() && scanOf(s).ID == "all"
	})
	close(fail)
	s := awaitState(t, o, "the scan is done", isDone("all"))
	for p := range o.Kafka.Leases {
		if s.Term(p) != before.Term(p) {
			t.Errorf("lease %d was acquired again", p)
		}
	}
	if w.recorder.failures("no route") < 2 || scanOf(s).Round > 1 {
		t.Errorf("%d failures, %+v", w.recorder.failures("no route"), scanOf(s))
	}
}

// With --once, a sweep that cannot ask for blobs ends the run with an error.
func TestSweepOnceGivesUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2, 20)
	o := w.options(broker(t))
	o.Feed.InitialScan, o.Once = ScanYes, true
	must(t, runOnce(t, o))
	w.unfed(5)
	w.store.Before = func(_ context.Context, op string, _ inventory.Query) error {
		if op == "head" {
			return errors.New("no route")
		}
		return nil
	}
	ask(t, o, offsets.Request{ID: "sweep", Time: time.Now(), Sweep: true})
	if err := runOnce(t, o); err == nil || !strings.Contains(err.Error(), "no route") {
		t.Error(err)
	}
}
