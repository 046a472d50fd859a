package bridge

import (
	"context"
	"errors"

	"blobfeed/offsets"
)

// errRoundOver ends a listing whose time in this round is used up.
var errRoundOver = errors.New("the time of the round is over")

// scanRound does what a lease owes to the frontier's scan.
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
func scanRound(out *writer, s *offsets.State) (todo, error) {
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
	ctx, done := h.until(h.work, l.endedBy)
	defer done()
	if !l.scan.Initial { // nothing is delivered before a first scan, so nothing waits
		limited, cancel := context.WithTimeoutCause(ctx, h.opts.ScanRound, errRoundOver)
		defer cancel()
		ctx = limited
	}
	l.w.txn.reset(l.basis.frontier.Completed)
	l.done.From = l.basis.frontier.Completed
	switch {
	case l.scan.Cancelled:
		// I4: what this lease was about to write when the scan was cancelled is dropped, or committed by now.
	case !l.done.Progress.Done():
		err = l.list(ctx)
		l.done.Done = l.done.Progress.Done() && !l.scan.Sweep
	case !l.done.Done && s.RowsListed(l.scan): // else some of the suspects are still to be listed
		l.done.Done, err = l.sweep(ctx)
	}
	if errors.Is(err, errPast) {
		return errMoved // what is open is dropped with the hold
	}
	if err != nil && !errors.Is(err, errRoundOver) {
		return err
	}
	if _, err := l.w.open(); err != nil {
		return err
	}
	l.done.Held, l.done.Over = l.scan.Round, l.scan.Round
	return l.w.commit()
}

// endedBy returns why the listing ends in a state, nil if it does not. No other scan and no other round lists before
// this lease has committed that it has.
func (l *listing) endedBy(s *offsets.State) error {
	if f := s.Frontier; f == nil || !f.Scan.Lists() || f.Scan.Cancelled != l.scan.Cancelled {
		return errPast
	}
	return l.h.keeps(s)
}
