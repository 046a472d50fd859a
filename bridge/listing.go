package bridge

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"blobfeed/bridge/pipeline"
	"blobfeed/internal/history"
	"blobfeed/offsets"
	"blobfeed/source/inventory"
)

// scanRound is the work of a tenure in a round of the frontier's scan. It lists the lease's containers, and writes a
// row for each blob. When all leases have listed theirs, it sweeps, if the scan does: it writes deletions (sweep.go).
// It belongs to the worker's goroutine.
type scanRound struct {
	t    *tenure
	task task
	scan *offsets.Scan
	done *offsets.Listing // the cursor's: what is changed here is committed with the next cursor

	left int64 // deletions that all leases may still write

	began, answered atomic.Int64 // nanoseconds since 1970: of the requests of this round, and of their first answer
}

// errRoundOver ends a listing whose time in this round is used up.
var errRoundOver = errors.New("the time of the round is over")

// run lists, or sweeps, until nothing is left or the time of the round is over, and commits that this lease has.
func (r *scanRound) run(s *offsets.State) (err error) {
	t := r.t
	ctx, done := t.during(r.task)
	defer done()
	if !r.scan.Initial { // nothing is delivered before a first scan, so nothing waits
		limit := t.findings.roundTime.limit(r.scan.ID, t.opts.Pace.ScanRound)
		limited, cancel := context.WithTimeoutCause(ctx, limit, errRoundOver)
		defer cancel()
		ctx = limited
		defer func() { t.findings.roundTime.learn(r.began.Load(), r.answered.Load(), time.Now().UnixNano()) }()
	}
	r.t.out.txn.reset(r.t.epoch.frontier.Completed)
	r.done.From = r.t.epoch.frontier.Completed
	switch {
	case r.scan.Cancelled:
		// I4: what this lease was about to write when the scan was cancelled is dropped, or committed by now.
	case !r.done.Progress.Done():
		err = r.list(ctx)
		r.done.Done = r.done.Progress.Done() && !r.scan.Sweep
	case !r.done.Done && s.RowsListed(r.scan): // else some of the suspects are still to be listed
		r.left = s.DeletionsLeft(r.scan)
		r.done.Done, err = r.sweep(ctx)
	}
	if errors.Is(err, errPast) {
		return errMoved // what is open is dropped with the tenure
	}
	if err != nil && !errors.Is(err, errRoundOver) {
		return err
	}
	if _, err := r.t.out.open(); err != nil {
		return err
	}
	r.done.Held, r.done.Over = r.scan.Round, r.scan.Round
	return r.t.out.commit()
}

// list writes the rows that fit into the round.
func (r *scanRound) list(ctx context.Context) error {
	t := r.t
	// One lease at a time lists for an instance, with all the requests that it may have at a time: their pages are in
	// memory (I9).
	if err := t.instance.listing.Take(ctx); err != nil {
		return err
	}
	defer t.instance.listing.Leave()
	r.begin()
	run := t.instance.pipe.List(ctx, r.t.epoch.describeRows(), r.rows(), r.walk)
	defer run.Close()
	if err := r.t.out.take(run.Blocks); err != nil {
		return err
	}
	return run.Err()
}

func (r *scanRound) rows() pipeline.Rows {
	updated, _ := history.ParseStored(r.scan.Updated) // "" of a later scan: each row has its page's time
	return pipeline.Rows{ID: r.scan.ID, Updated: updated, Account: r.t.opts.Feed.AccountURL}
}

// walk lists the containers of this lease that the filter does not leave out.
func (r *scanRound) walk(ctx context.Context, emit func(context.Context, *inventory.Step) error) error {
	t, filter := r.t, &r.t.epoch.filter
	return inventory.Walk(ctx, t.opts.Feed.Inventory, r.done.Progress, inventory.Options{
		Container: r.scan.Container, Requests: t.opts.Pace.ScanRequests,
		Prefix: func(container string) string {
			prefix, _ := filter.Prefix(container)
			return r.scan.Narrowed(prefix)
		},
		PageSize: t.instance.pipe.PageBlobs(t.opts.Pace.ScanRequests),
		Mine: func(container string) bool {
			return offsets.LeaseOf(container, t.instance.leases) == t.p && filter.Selects(container)
		},
		Retry: t.retry,
	}, func(ctx context.Context, s *inventory.Step) error {
		if s.Listed != nil || !s.Served.IsZero() { // else no request was made for it
			r.answer()
		}
		return emit(ctx, s)
	})
}

// begin notes that the requests of the round begin, and answer that one is answered.
func (r *scanRound) begin()  { r.began.CompareAndSwap(0, time.Now().UnixNano()) }
func (r *scanRound) answer() { r.answered.CompareAndSwap(0, time.Now().UnixNano()) }

// roundLimit is how long a lease makes requests in a round of a scan. What has no answer when the round ends is
// dropped, so a page that takes longer than a round would never be written. A round without an answer is followed by a
// longer one.
type roundLimit struct {
	scan string // the ID
	last time.Duration
}

// maxRound bounds a round. Requests that take longer fail, by the network timeout.
const maxRound = 2 * time.Minute

// limit returns how long a round may be, at least what is set.
func (r *roundLimit) limit(scan string, set time.Duration) time.Duration {
	if r.scan != scan {
		*r = roundLimit{scan: scan}
	}
	r.last = max(r.last, set)
	return r.last
}

// learn makes the next round twice as long as the first answer took, or twice as long as this one if there was none.
func (r *roundLimit) learn(began, answered, ended int64) {
	took := time.Duration(answered - began)
	switch {
	case began == 0: // it was another lease's turn
	case answered != 0:
		r.last = min(2*took, maxRound)
	case time.Duration(ended-began) > r.last/2:
		r.last = min(2*r.last, maxRound)
	}
}
