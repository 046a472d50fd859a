package bridge

import (
	"context"
	"errors"
	"hash/fnv"
	"time"

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

// errRoundOver ends a listing whose time in this round is used up.
var errRoundOver = errors.New("the time of the round is over")

// scan does what the lease owes to the frontier's scan.
//
// A page shows what was true when the service answered. Were an event of one of its blobs delivered between the answer
// and the commit of the row, the older row would stand behind it, for good. So no lease delivers while any lease lists:
//
//	keeper            this lease
//	                  delivers event v1 of a blob
//	holds, round 2
//	                  commits Held=2: the open transaction is aborted, and nothing is produced from now on
//	lists, round 2    (every lease has committed Held=2)
//	                  requests a page, commits its rows, commits Over=2
//	delivers          (every lease has committed Over=2)
//	                  delivers event v1 again, and what follows
func (w *worker) scan(out *writer, s *offsets.State) (todo, error) {
	h, scan := out.h, s.Frontier.Scan
	if !s.Owes(h.p) {
		return todoWait, nil
	}
	l := &listing{h: h, basis: out.basis, w: out, scan: scan, done: h.cursor.Listing(scan)}
	h.cursor.Scan = l.done
	if !scan.Lists() {
		l.done.Held = scan.Round // I4: this hold has produced nothing, and the ones before it are fenced
		return todoAgain, h.lease.Commit(h.held, h.cursor, nil)
	}
	return todoAgain, l.run(s)
}

// run lists until all is listed, or the time of the round is over, and commits that this lease has.
func (l *listing) run(s *offsets.State) (err error) {
	h := l.h
	defer func() {
		if err != nil { // what the sweep has judged is not committed
			h.findings.stopSweep()
		}
	}()
	ctx, done := h.until(h.work, func(s *offsets.State) error {
		if f := s.Frontier; f == nil || f.Scan == nil || f.Scan.ID != l.scan.ID || f.Scan.Round != l.scan.Round ||
			!f.Scan.Lists() || f.Scan.Cancelled != l.scan.Cancelled {
			return errPast
		}
		return h.keeps(s)
	})
	defer done()
	if !l.scan.Initial { // nothing is delivered before a first scan, so nothing waits
		limited, cancel := context.WithTimeoutCause(ctx, h.opts.ScanRound, errRoundOver)
		defer cancel()
		ctx = limited
	}
	l.w.txn.reset(l.basis.frontier.Completed)
	l.done.From = l.basis.frontier.Completed
	switch {
	case l.scan.Cancelled: // I4: what this lease was about to write when it was cancelled is dropped, or committed by now
	case !l.done.Progress.Done():
		err = l.list(ctx)
		l.done.Done = l.done.Progress.Done() && !l.scan.Sweep
	case !l.done.Done && s.RowsListed(l.scan): // else some of the suspects are still to be listed
		l.done.Done, err = l.sweep(ctx)
	}
	if errors.Is(err, errPast) || errors.Is(context.Cause(ctx), errPast) {
		return errMoved // what is open is dropped with the hold
	}
	if err != nil && !errors.Is(err, errRoundOver) {
		return err
	}
	l.done.Held, l.done.Over = l.scan.Round, l.scan.Round
	l.w.txn.start()
	return l.w.commit()
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
	updated, err := parseTime(l.scan.Updated)
	if err != nil || !l.scan.Initial {
		updated.Wall, updated.Logical = 0, 0 // that of the page
	}
	return pipeline.Rows{ID: l.scan.ID, Updated: updated, Account: l.h.opts.AccountURL}
}

// walk lists the containers of this lease that the filter does not leave out.
func (l *listing) walk(ctx context.Context, emit func(context.Context, *inventory.Step) error) error {
	h, filter := l.h, &l.basis.filter
	return inventory.Walk(ctx, h.opts.Inventory, l.done.Progress.Clone(), inventory.Options{
		Container: l.scan.Container, Prefix: l.scan.Prefix, Requests: h.opts.ScanRequests,
		PageSize: h.shared.pipe.PageBlobs(h.opts.ScanRequests),
		Mine: func(container string) bool {
			return h.shared.leaseOf(container) == h.p && filter.Selects(container)
		},
		Retry: h.retryOpen,
	}, emit)
}

// leaseOf returns the lease that lists a container.
func (sh *shared) leaseOf(container string) int32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(container))
	return int32(h.Sum32() % uint32(sh.leases))
}

// advanceScan moves the cursor over a block of rows (I1).
func (w *writer) advanceScan(b *pipeline.Block) error {
	l := w.h.cursor.Scan
	if err := l.Progress.Apply(b.Step); err != nil {
		return err
	}
	l.Rows += int64(b.Counts.Rows)
	return nil
}

// pause is how long events are delivered behind a round: as long as the round lasted, so that half of the time is left
// to each. It has a minimum, since a round costs the leases their open transactions.
func (h *hold) pause(now time.Time) time.Duration {
	return min(max(now.Sub(h.listsSince), minPause), h.opts.ScanRound)
}

const minPause = 500 * time.Millisecond
