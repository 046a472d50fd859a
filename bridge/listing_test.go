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

// rejecting is an account in which each listing of blobs, or of containers, begins with an empty page. It rejects the
// marker behind that page for a while.
type rejecting struct {
	inventory.Store
	containers bool
	lasts      time.Duration

	began    atomic.Int64 // when the first marker was rejected
	rejected atomic.Int32
}

const emptyPage = "behind an empty page"

// listed reports whether the page of a marker is empty, and returns the marker behind it.
func (r *rejecting) listed(marker string) (next string, empty bool, err error) {
	if marker != emptyPage {
		return emptyPage, marker == "", nil
	}
	r.began.CompareAndSwap(0, time.Now().UnixNano())
	if time.Now().UnixNano()-r.began.Load() < int64(r.lasts) {
		r.rejected.Add(1)
		return "", false, inventory.ErrMarker
	}
	return "", false, nil
}

func (r *rejecting) List(ctx context.Context, q inventory.Query) (*inventory.Page, error) {
	if next, empty, err := r.listed(q.Marker); !r.containers && (empty && q.From == "" || err != nil) {
		return &inventory.Page{Marker: next, Served: time.Now()}, err
	}
	q.Marker = strings.TrimPrefix(q.Marker, emptyPage)
	return r.Store.List(ctx, q)
}

func (r *rejecting) Containers(ctx context.Context, marker string) (*inventory.Containers, error) {
	if next, empty, err := r.listed(marker); r.containers && (empty || err != nil) {
		return &inventory.Containers{Marker: next, Served: time.Now()}, err
	}
	return r.Store.Containers(ctx, strings.TrimPrefix(marker, emptyPage))
}

// A service that rejects the markers of empty pages for a while gets a few requests meanwhile, further and further
// apart. That is no failure, and the scan is complete then.
func TestMarkersAreRejectedForAWhile(t *testing.T) {
	t.Parallel()
	for name, containers := range map[string]bool{"of blobs": false, "of containers": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 4, 10)
			c := broker(t)
			o := w.options(c)
			r := &rejecting{Store: w.store, containers: containers, lasts: time.Second}
			o.Feed.InitialScan, o.Feed.Inventory, o.Pace.ScanRequests = ScanYes, r, 1
			must(t, runOnce(t, o))
			w.compare(c)
			if n := r.rejected.Load(); n < 1 || n > 5 || w.recorder.failures("") > 0 {
				t.Errorf("%d markers were rejected, %d failures", n, w.recorder.failures(""))
			}
		})
	}
}

// A service that always rejects them is given up within a round of a later scan, by default 10 seconds, because each
// round counts from 0.
func TestMarkersAreAlwaysRejected(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1, 10)
	o := w.options(broker(t))
	r := &rejecting{Store: w.store, lasts: time.Hour}
	o.Feed.Inventory, o.Pace.ScanRequests, o.Pace.ScanRound = r, 1, 10*time.Second
	live(t, o)
	ask(t, o, offsets.Request{ID: "later", Time: time.Now()})
	w.recorder.awaitFailure(t, "the service rejects the marker of a listing, 7 times in a row")
	if n := r.rejected.Load(); n > 10 {
		t.Errorf("%d markers were rejected", n)
	}
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
