package bridge

import (
	"context"
	"errors"
	"time"

	"blobfeed/bridge/pipeline"
	"blobfeed/internal/catalog"
	"blobfeed/internal/history"
	"blobfeed/internal/pause"
	"blobfeed/internal/testing/mutation"
	"blobfeed/offsets"
	"blobfeed/source"
)

// todo is what a worker does after it has looked at a state.
type todo int

const (
	todoAgain todo = iota // something was done, so the state may be another
	todoWait              // until the state changes, or it is time to look at the feed again
	todoStay              // the same, and something is failing still
	todoEnd
)

// loop calls f with the state until f returns todoEnd or an error, or until the work of the tenure ends. It is the one
// loop in which a worker waits for the state: it ends on a stop, a fence and another epoch. A look that failed is
// repeated, a few times with Once and else without end: a failure of the store is no reason to give up a lease.
func (t *tenure) loop(f func(*offsets.State) (todo, error)) error {
	for failures := 0; t.work.Err() == nil; {
		s, changed, err := t.instance.view.Get()
		if err != nil {
			return err
		}
		do, err := f(s)
		var look *lookError
		if errors.As(err, &look) && t.work.Err() == nil {
			failures++
			if err := t.failed(look.error, failures, s); err != nil {
				return err
			}
			continue
		}
		failures = 0
		switch {
		case errors.Is(err, errPast): // the state gives another task
		case err != nil:
			return err
		case do == todoEnd:
			return nil
		case do == todoWait:
			if err := t.commitFailing(false); err != nil {
				return err
			}
			idle := Waiting
			if t.delivery != nil {
				idle = Drained
			}
			t.opts.Observer.Active(t.p, idle)
			t.wait(changed)
			t.opts.Observer.Active(t.p, Working)
		case do == todoStay:
			t.wait(changed)
		}
	}
	return context.Cause(t.work)
}

// failed reports a failed look, the last of several in a row, and waits before the next one. It returns an error that
// another look cannot mend.
func (t *tenure) failed(err error, times int, s *offsets.State) error {
	if permanent(err) {
		return err
	}
	retries := t.opts.retries(nil)
	if retries.Limit > 0 && times >= retries.Limit {
		return &pause.GivenUpError{Err: err}
	}
	t.opts.Observer.Failed(t.p, err)
	t.findings.remember(t.work, t.opts.Now(), t.opts.Observer.advised(err))
	if err := t.commitFailing(true); err != nil {
		return err
	}
	ctx, done := t.until(t.work, func(now *offsets.State) error { // another frontier may need another look
		if now.Frontier != s.Frontier || t.task(now) != t.task(s) {
			return errPast
		}
		return nil
	})
	defer done()
	_ = pause.For(ctx, retries.Delay(times)) // the loop sees why it ended
	return nil
}

// wait returns when the state changes, when it is time to look at the feed again, or when the work of the tenure ends.
func (t *tenure) wait(changed <-chan struct{}) {
	until := t.opts.Pace.PollInterval
	if d := t.delivery; d != nil {
		until = time.Until(d.due)
	}
	if round := t.rounds.next.Sub(t.opts.Now()); round > 0 { // of a scan: an ended feed has no events to wait for
		until = min(until, round)
	}
	timer := time.NewTimer(until)
	defer timer.Stop()
	select {
	case <-changed:
	case <-timer.C:
		t.instance.pipe.DropBuffers() // there was no work meanwhile
	case <-t.work.Done():
	}
}

// awaitWork returns todoEnd when the lease has something to do. Lease 0 always has: the frontier. A producer for each
// lease that never gets a shard would cost the brokers something and bring nothing.
//
// It decides nothing else: the view may be old, and another owner may have delivered the events that seem to be lost.
func (t *tenure) awaitWork(s *offsets.State) (todo, error) {
	if t.p == 0 {
		return todoEnd, nil
	}
	if !t.instance.caughtUp(s) {
		return todoWait, nil
	}
	switch do := t.task(s); do.kind {
	case waits:
		return todoWait, nil
	case delivers:
		m, _, err := t.current(do, s)
		if err != nil || len(t.instance.shardsOf(t.p, m)) == 0 {
			return todoWait, err
		}
	}
	return todoEnd, nil
}

// step does the task of the lease in s, as far as it can be done now.
func (t *tenure) step(s *offsets.State) (todo, error) {
	do := t.task(s)
	if do.kind != delivers {
		t.delivery = nil
	}
	switch do.kind {
	case enters: // what comes after it is of the new epoch
		return todoAgain, t.lease.Commit(t.held, t.cursor, nil)
	case holds:
		return todoAgain, t.holdRound(s)
	case lists:
		return todoAgain, t.listRound(do, s)
	case delivers:
		return t.deliver(do, s)
	}
	return todoWait, nil
}

// deliver delivers the lease's part of the current segment, as far as it can be done now.
func (t *tenure) deliver(do task, s *offsets.State) (todo, error) {
	if d := t.delivery; d != nil && d.m.Segment == do.segment && time.Until(d.due) > 0 {
		return d.rest(), nil
	}
	m, gap, err := t.current(do, s) // I7: the status first
	if err != nil {
		return todoWait, err
	}
	shards := t.instance.shardsOf(t.p, m)
	if len(shards) == 0 {
		t.delivery = nil
		return todoWait, nil
	}
	if d := t.delivery; d == nil || d.m.Segment != do.segment {
		t.delivery = &delivery{t: t, m: m, readers: map[int]*source.ShardReader{}}
		t.out.backlog.Reset()
	} else if gap == nil && d.rests(m) {
		return d.rest(), nil
	}
	d := t.delivery
	d.m, d.shards = m, shards
	if gap == nil {
		err = d.pass(do)
	}
	if gap != nil || errors.As(err, &gap) {
		return todoAgain, d.lose(gap)
	}
	switch {
	case errors.Is(err, errPause): // what its readers have behind the cursor is read again
		t.delivery, err = nil, nil
	case errors.Is(err, errPast):
		err = errMoved
	}
	return todoAgain, err
}

// holdRound stops delivering for a round of the frontier's scan.
//
// A page shows what was true when the service answered. Were an event of one of its blobs delivered between the answer
// and the commit of the row, the older row would stand behind it, for good. So no lease delivers while any lease lists:
//
//	coordinator       this lease
//	                  delivers event v1 of a blob
//	holds, round 2
//	                  commits what is open, then Held=2: nothing is produced from now on
//	lists, round 2    (every lease has committed Held=2)
//	                  requests a page, commits its rows, commits Over=2
//	delivers          (every lease has committed Over=2)
//	                  delivers what follows v1
func (t *tenure) holdRound(s *offsets.State) error {
	scan := s.Frontier.Scan
	t.cursor.Scan = t.cursor.Listing(scan)
	t.cursor.Scan.Held = scan.Round // I4: nothing is open here, and the tenures before this one are fenced
	t.cursor.Scan.MayDelete = s.MayDelete(scan, t.p)
	return t.lease.Commit(t.held, t.cursor, nil)
}

// listRound lists in a round of the frontier's scan.
func (t *tenure) listRound(do task, s *offsets.State) error {
	l := &scanRound{t: t, task: do, scan: s.Frontier.Scan, done: t.cursor.Listing(s.Frontier.Scan)}
	t.cursor.Scan = l.done
	return l.run(s)
}

// commitFailing commits the cursor with the last failure, or that what failed before is over: the lease has done all
// that there is to do. A lasting failure is written once. It is no progress, so the observer is not called. No
// transaction is open: that is for the callers to know, the loop, doubt and writer.take.
func (t *tenure) commitFailing(failing bool) error {
	switch {
	case t.lease == nil:
		return nil
	case failing:
		if !t.findings.putInto(t.cursor) {
			return nil
		}
	case !t.cursor.Failing:
		return nil
	default:
		t.cursor.Failing = false
	}
	return t.lease.Commit(t.held, t.cursor, nil)
}

// doubt returns gap if an earlier tenure found it, too. Else it ends the tenure, so that the next one looks behind its
// own fence.
func (t *tenure) doubt(gap *history.GapError) error {
	place := gap.At.String() + " " + gap.Chunk
	if t.findings.doubted != place && !mutation.Believe {
		t.findings.doubted = place
		t.trace(offsets.Doubts, gap)
		return errDoubt
	}
	t.findings.remember(t.work, t.opts.Now(), t.opts.Observer.advised(gap)) // bridge status reports it when nobody runs
	if err := t.commitFailing(true); err != nil && !mutation.Believe {      // another fence
		return err
	}
	t.trace(offsets.Ends, gap)
	return gap
}

// trace reports to tests what the tenure concludes.
func (t *tenure) trace(kind offsets.EventKind, why error) {
	if t.opts.Trace != nil {
		t.opts.Trace(offsets.Event{Kind: kind, Lease: t.p, Why: why})
	}
}

// retry retries f for the goroutines of shards, pages and HEAD requests, which write nothing themselves. It remembers
// the last failure, and the next commit writes it into the cursor. Errors that end the shard or the tenure are returned
// at once.
func (t *tenure) retry(ctx context.Context, f func(context.Context) error) error {
	var ends error
	err := t.instance.retry(ctx, t.p, func(ctx context.Context) error {
		err := f(ctx)
		var stay *pipeline.StayError
		if errors.Is(err, catalog.ErrLimitChanged) || errors.As(err, &stay) {
			ends = err
			return nil
		}
		t.findings.remember(ctx, t.opts.Now(), t.opts.Observer.advised(err))
		return err
	})
	if err == nil {
		err = ends
	}
	return err
}
