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

// listing is the work of a tenure in a round of the frontier's scan: it lists the lease's containers, and writes a row
// for each blob. It belongs to the worker's goroutine.
type listing struct {
	t    *tenure
	task task
	scan *offsets.Scan
	done *offsets.Listing // the cursor's

	mayDelete, left int64 // deletions in this round, and of all leases to the end of the scan

	began, answered atomic.Int64 // nanoseconds since 1970: of the requests of this round, and of their first answer
}

// errRoundOver ends a listing whose time in this round is used up.
var errRoundOver = errors.New("the time of the round is over")

// run lists until all is listed, or the time of the round is over, and commits that this lease has.
func (l *listing) run(s *offsets.State) (err error) {
	t := l.t
	defer func() {
		if err != nil { // what the sweep has judged is not committed
			t.findings.stopSweep()
		}
	}()
	ctx, done := t.during(l.task)
	defer done()
	if !l.scan.Initial { // nothing is delivered before a first scan, so nothing waits
		limit := t.findings.rounds.limit(l.scan.ID, t.opts.ScanRound)
		limited, cancel := context.WithTimeoutCause(ctx, limit, errRoundOver)
		defer cancel()
		ctx = limited
		defer func() { t.findings.rounds.learn(l.began.Load(), l.answered.Load(), time.Now().UnixNano()) }()
	}
	l.t.out.txn.reset(l.t.epoch.frontier.Completed)
	l.done.From = l.t.epoch.frontier.Completed
	switch {
	case l.scan.Cancelled:
		// I4: what this lease was about to write when the scan was cancelled is dropped, or committed by now.
	case !l.done.Progress.Done():
		err = l.list(ctx)
		l.done.Done = l.done.Progress.Done() && !l.scan.Sweep
	case !l.done.Done && s.RowsListed(l.scan): // else some of the suspects are still to be listed
		l.mayDelete, l.left = s.MayDelete(l.scan, l.t.p)
		l.done.Done, err = l.sweep(ctx)
	}
	if errors.Is(err, errPast) {
		return errMoved // what is open is dropped with the tenure
	}
	if err != nil && !errors.Is(err, errRoundOver) {
		return err
	}
	if _, err := l.t.out.open(); err != nil {
		return err
	}
	l.done.Held, l.done.Over = l.scan.Round, l.scan.Round
	return l.t.out.commit()
}

// list writes the rows that fit into the round.
func (l *listing) list(ctx context.Context) error {
	t := l.t
	// One lease at a time lists for an instance, with all the requests that it may have at a time: their pages are in
	// memory (I9).
	if err := t.instance.listing.Take(ctx); err != nil {
		return err
	}
	defer t.instance.listing.Leave()
	l.begin()
	run := t.instance.pipe.List(ctx, l.t.epoch.describeRows(), l.rows(), l.walk)
	defer run.Close()
	if err := l.t.out.take(run.Blocks); err != nil {
		return err
	}
	return run.Err()
}

func (l *listing) rows() pipeline.Rows {
	updated, _ := history.ParseStored(l.scan.Updated) // "" of a later scan: each row has its page's time
	return pipeline.Rows{ID: l.scan.ID, Updated: updated, Account: l.t.opts.AccountURL}
}

// walk lists the containers of this lease that the filter does not leave out.
func (l *listing) walk(ctx context.Context, emit func(context.Context, *inventory.Step) error) error {
	t, filter := l.t, &l.t.epoch.filter
	return inventory.Walk(ctx, t.opts.Inventory, l.done.Progress, inventory.Options{
		Container: l.scan.Container, Requests: t.opts.ScanRequests,
		Prefix: func(container string) string {
			prefix, _ := filter.Prefix(container)
			return l.scan.Narrowed(prefix)
		},
		PageSize: t.instance.pipe.PageBlobs(t.opts.ScanRequests),
		Mine: func(container string) bool {
			return offsets.LeaseOf(container, t.instance.leases) == t.p && filter.Selects(container)
		},
		Retry: t.retry,
	}, func(ctx context.Context, s *inventory.Step) error {
		if s.Listed != nil || !s.Served.IsZero() { // else no request was made for it
			l.answer()
		}
		return emit(ctx, s)
	})
}

// begin notes that the requests of the round begin, and answer that one is answered.
func (l *listing) begin()  { l.began.CompareAndSwap(0, time.Now().UnixNano()) }
func (l *listing) answer() { l.answered.CompareAndSwap(0, time.Now().UnixNano()) }

// roundLimit is how long a lease makes requests in a round of a scan. What has no answer when the round ends is
// dropped, so a page that takes longer than a round would never be written. A round without an answer is followed by a
// longer one.
type roundLimit struct {
	scan string // the ID
	last time.Duration
}

// maxRound bounds a round. Requests that take longer fail (BRIDGE_NETWORK_TIMEOUT).
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
