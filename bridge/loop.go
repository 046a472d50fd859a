package bridge

import (
	"context"
	"errors"
	"time"

	"blobfeed/internal/pause"
	"blobfeed/offsets"
)

// todo is what a worker does after it has looked at a state.
type todo int

const (
	todoAgain todo = iota // something was done, so the state may be another
	todoWait              // until the state changes, or it is time to look at the feed again
	todoEnd
)

// loop calls f with the state until f returns todoEnd or an error, or until the work of the hold ends. It is the one
// loop in which a worker waits for the state: it ends on a stop, a fence and another epoch. A look that failed is
// repeated, for as long as it takes: a failure of the store is no reason to give up a lease.
func (h *hold) loop(f func(*offsets.State) (todo, error)) error {
	for failures := 0; h.work.Err() == nil; {
		s, changed, err := h.shared.view.Get()
		if err != nil {
			return err
		}
		do, err := f(s)
		var look *lookError
		if errors.As(err, &look) && h.work.Err() == nil {
			failures++
			if err := h.failed(look.error, failures, s); err != nil {
				return err
			}
			continue
		}
		failures = 0
		switch {
		case err != nil:
			return err
		case do == todoEnd:
			return nil
		case do == todoWait:
			if err := h.recovered(); err != nil {
				return err
			}
			h.wait(changed)
		}
	}
	return context.Cause(h.work)
}

// failed reports a look that has failed so many times in a row, and waits before the next. It returns an error that no
// other look can help.
func (h *hold) failed(err error, times int, s *offsets.State) error {
	if permanent(err) {
		return err
	}
	if h.opts.Once && times >= onceAttempts {
		return &givenUpError{err}
	}
	h.opts.Observer.Failed(h.p, err)
	h.findings.remember(h.work, h.opts.Now(), err)
	if err := h.commitFailure(); err != nil {
		return err
	}
	ctx, done := h.until(h.work, func(now *offsets.State) error { // another frontier may need another look
		if now.Frontier != s.Frontier || (now.Requested() == nil) != (s.Requested() == nil) {
			return errPast
		}
		return nil
	})
	defer done()
	_ = pause.For(ctx, delay(times)) // the loop sees why it ended
	return nil
}

// wait returns when the state changes, when it is time to look at the feed again, or when the work of the hold ends.
func (h *hold) wait(changed <-chan struct{}) {
	h.opts.Observer.Active(h.p, Waiting)
	defer h.opts.Observer.Active(h.p, Working)
	until := h.opts.PollInterval
	if round := h.rounds.next.Sub(h.opts.Now()); round > 0 { // of a scan: an ended feed has no events to wait for
		until = min(until, round)
	}
	t := time.NewTimer(until)
	defer t.Stop()
	select {
	case <-changed:
	case <-t.C:
		h.shared.pipe.DropBuffers() // there was no work meanwhile
	case <-h.work.Done():
	}
}
