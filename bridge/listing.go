package bridge

import (
	"context"

	"blobfeed/bridge/pipeline"
	"blobfeed/offsets"
	"blobfeed/source/inventory"
)

// listing is the work of a hold in a round of the frontier's scan: it lists the lease's containers, and writes a row
// for each blob. It belongs to the worker's goroutine.
type listing struct {
	h     *hold
	basis *basis
	w     *writer
	scan  *offsets.Scan
	done  *offsets.Listing // the cursor's
}

// list writes the rows that fit into the round.
func (l *listing) list(ctx context.Context) error {
	h := l.h
	// One lease at a time lists for an instance, with all the requests that it may have at a time: their pages are in
	// memory (I9).
	if err := h.shared.listing.take(ctx); err != nil {
		return err
	}
	defer h.shared.listing.leave()
	run := h.shared.pipe.List(ctx, l.basis.describeRows(), l.rows(), l.walk)
	defer run.Close()
	if err := l.w.take(run.Blocks); err != nil {
		return err
	}
	return run.Err()
}

func (l *listing) rows() pipeline.Rows {
	updated, _ := parseTime(l.scan.Updated) // as the keeper wrote it; "" of a later scan: each row has its page's time
	return pipeline.Rows{ID: l.scan.ID, Updated: updated, Account: l.h.opts.AccountURL}
}

// walk lists the containers of this lease that the filter does not leave out.
func (l *listing) walk(ctx context.Context, emit func(context.Context, *inventory.Step) error) error {
	h, filter := l.h, &l.basis.filter
	return inventory.Walk(ctx, h.opts.Inventory, l.done.Progress, inventory.Options{
		Container: l.scan.Container, Prefix: l.scan.Prefix, Requests: h.opts.ScanRequests,
		PageSize: h.shared.pipe.PageBlobs(h.opts.ScanRequests),
		Mine: func(container string) bool {
			return offsets.LeaseOf(container, h.shared.leases) == h.p && filter.Selects(container)
		},
		Retry: h.retry,
	}, emit)
}
