package bridge

import (
	"context"
	"time"

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
// loop in which a worker waits for the state: it ends on a stop, a fence and another epoch.
func (h *hold) loop(f func(*offsets.State) (todo, error)) error {
	for h.work.Err() == nil {
		s, changed, err := h.shared.view.Get()
		if err != nil {
			return err
		}
		switch do, err := f(s); {
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

// wait returns when the state changes, when it is time to look at the feed again, or when the work of the hold ends.
func (h *hold) wait(changed <-chan struct{}) {
	h.opts.Observer.Active(h.p, Waiting)
	defer h.opts.Observer.Active(h.p, Working)
	until := h.opts.PollInterval
	if round := h.nextRound.Sub(h.opts.Now()); round > 0 { // of a scan: an ended feed has no events to wait for
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
