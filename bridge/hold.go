package bridge

import (
	"context"
	"errors"
	"fmt"

	"blobfeed/offsets"
	"blobfeed/source"
)

// A hold of a lease, and the work on a segment, end when the state says so, whatever the worker waits for at that
// moment: a
// retry, a poll, a free buffer, an answer of a broker. A wait that outlives its reason blocks the move that ended it.
//
//	hold     another owner, or another epoch
//	segment  another current segment

// errReacquire ends a hold that is to be followed by another at once: its fence is later than what was found.
var errReacquire = errors.New("the lease has to be acquired again")

var (
	errMoved = fmt.Errorf("%w: the frontier was moved", errReacquire)
	errDoubt = fmt.Errorf("%w: what seems to be lost may be delivered by another owner", errReacquire)
	// errPast ends the work on a segment that is not the current one any more.
	errPast = errors.New("the segment is over")
)

// until returns a context that ends when over returns an error for the state, with that error as its cause.
func (w *worker) until(parent context.Context, over func(*offsets.State) error) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(parent)
	go func() {
		var cause error
		if _, err := w.view.Await(ctx, func(s *offsets.State) bool { cause = over(s); return cause != nil }); err != nil {
			cause = err
		}
		cancel(cause)
	}()
	return ctx, func() { cancel(nil) }
}

// during returns a context of the work on the current segment seg.
func (w *worker) during(seg source.Segment) (context.Context, context.CancelFunc) {
	return w.until(w.work, func(s *offsets.State) error {
		if s.Frontier == nil || s.Frontier.Current != seg {
			return errPast
		}
		if _, regressed := s.Regressed(); regressed && w.p == 0 {
			return errPast // the keeper of the frontier has a repair to begin
		}
		return nil
	})
}

// holding makes the contexts of a hold, until the returned function is called: w.held ends with the lease, w.work
// also at a stop.
// W.over returns why the hold ends in a state, nil if it does not. A lease that writes nothing would not notice
// otherwise: an
// idle account's segment stays open for days.
func (w *worker) holding(l *offsets.Lease) (end func()) {
	epoch, term := l.State().Epoch, l.Term()
	w.over = func(s *offsets.State) error {
		switch {
		case s.Term(w.p) != term:
			return offsets.ErrFenced
		case s.Epoch != epoch: // I3: the cursor that counts is one that is read after the move
			return errMoved
		}
		return nil
	}
	held, cancel := w.until(w.hard, w.over)
	work, stop := context.WithCancelCause(held)
	unhook := context.AfterFunc(w.soft, func() { stop(context.Cause(w.soft)) })
	w.held, w.work = held, work
	return func() {
		unhook()
		stop(nil)
		cancel()
		w.held, w.work = w.hard, w.soft
	}
}

// explain adds to a fence what is known of its reason.
func (w *worker) explain(err error) error {
	if !errors.Is(err, offsets.ErrFenced) {
		return err
	}
	s, _, verr := w.view.Get()
	if verr != nil {
		return err
	}
	if owner := s.Owners[w.p]; owner != w.Instance {
		return fmt.Errorf("%w: instance %s has taken the lease", err, owner)
	}
	return fmt.Errorf("%w, and no other instance holds the lease: its transaction was open for longer than "+
		"BRIDGE_TXN_TIMEOUT, or the frontier moves", err)
}
