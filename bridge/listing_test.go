package bridge

import (
	"context"
	"slices"
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
	o.InitialScan, o.ScanRequests = ScanYes, 1
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
	o.InitialScan, o.Inventory = ScanYes, falling{w.store}
	live(t, o)
	w.recorder.awaitFailure(t, "not in ascending order")
	awaitState(t, o, "the scan is under way", func(s *offsets.State) bool { return scanOf(s).Active() })
}
