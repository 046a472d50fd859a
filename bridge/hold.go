package bridge

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/offsets"
	"blobfeed/source"
)

// A hold of a lease, and the work on a segment, end when the state says so, whatever the worker waits for at that
// moment: a retry, a poll, a free buffer, an answer of a broker. A wait that outlives its reason blocks the move that
// ended it. So every wait uses one of three contexts:
//
//	held     ends with the lease (another owner, another epoch) or a hard stop
//	work     ends with held, or at a stop
//	segment  ends with work, or when another segment is the current one

// errReacquire ends a hold that another one follows at once: its fence is later than what was found.
var errReacquire = errors.New("the lease has to be acquired again")

var (
	errMoved = fmt.Errorf("%w: the frontier was moved", errReacquire)
	errDoubt = fmt.Errorf("%w: what seems to be lost may be delivered by another owner", errReacquire)
	// errPast ends the work on a segment that is not the current one any more.
	errPast = errors.New("the segment is over")
	// errLimitChanged ends a hold whose producer was made for another size of records.
	errLimitChanged = errors.New("the topics' max.message.bytes has changed")
)

// hold is what a worker knows from before one acquisition of its lease to the release of it. It belongs to the worker's
// goroutine; those of shards use only what is immutable or guards itself.
type hold struct {
	shared *shared  // immutable
	opts   *Options // immutable
	p      int32    // immutable

	held, work context.Context // immutable from the acquisition on
	cancel     context.CancelFunc
	epoch      int64          // of the state behind the fence
	lease      *offsets.Lease // nil before the acquisition
	cursor     *offsets.Cursor
	limit      int32 // immutable: bytes of a batch that the topics take
	stateLimit int32 // immutable: bytes of a document that the state's topic takes

	findings *findings // of the worker; guards itself

	rounds rounds // of lease 0, while a scan is under way
}

// acquire fences the former owner and reads the cursor. Soft and hard are the worker's contexts.
func (h *hold) acquire(soft, hard context.Context) (err error) {
	if h.limit, err = h.shared.messageLimit(soft); err != nil {
		return err
	}
	if h.stateLimit, err = h.shared.stateLimit(soft); err != nil {
		return err
	}
	lease, err := offsets.Acquire(soft, h.shared.cfg, h.shared.view, h.p, h.batchLimits()) // I3: fence, then read
	if err != nil {
		return err
	}
	h.lease, h.cursor, h.epoch = lease, lease.Cursor(), lease.State().Epoch
	held, cancel := h.until(hard, h.endedBy)
	work, stop := context.WithCancelCause(held)
	unhook := context.AfterFunc(soft, func() { stop(context.Cause(soft)) })
	h.held, h.work = held, work
	h.cancel = func() {
		unhook()
		stop(nil)
		cancel()
	}
	return nil
}

// release gives the lease up.
func (h *hold) release(hard context.Context) {
	h.cancel()
	h.lease.Close(hard)
}

// endedBy returns why the hold ends in a state, nil if it does not. A lease that writes nothing would not notice
// otherwise: an idle account's segment stays open for days.
func (h *hold) endedBy(s *offsets.State) error {
	switch {
	case s.Term(h.p) != h.lease.Term():
		return offsets.ErrFenced
	case s.Epoch != h.epoch: // I3: the cursor that counts is one that is read after the move
		return errMoved
	}
	return nil
}

// until returns a context that ends when over returns an error for the state, with that error as its cause.
func (h *hold) until(parent context.Context, over func(*offsets.State) error) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(parent)
	go func() {
		var cause error
		isOver := func(s *offsets.State) bool { cause = over(s); return cause != nil }
		if _, err := h.shared.view.Await(ctx, isOver); err != nil {
			cause = err
		}
		cancel(cause)
	}()
	return ctx, func() { cancel(nil) }
}

// during returns a context of the work on the current segment seg.
func (h *hold) during(seg source.Segment) (context.Context, context.CancelFunc) {
	ctx, stop := h.work, context.CancelFunc(func() {})
	if s, _, err := h.shared.view.Get(); err == nil && h.p == 0 && s.Frontier != nil && s.Frontier.Scan.Active() {
		// The keeper has another round to begin.
		ctx, stop = context.WithTimeoutCause(ctx, h.rounds.next.Sub(h.opts.Now()), errPast)
	}
	ctx, cancel := h.until(ctx, func(s *offsets.State) error {
		if s.Frontier == nil || s.Frontier.Current != seg || s.Frontier.Scan.Holds() {
			return errPast
		}
		return h.keeps(s)
	})
	return ctx, func() { cancel(); stop() }
}

// keeps returns errPast if the keeper of the frontier has a repair or a scan to begin, or one to cancel: the work of
// lease 0 holds it up.
func (h *hold) keeps(s *offsets.State) error {
	if _, regressed := s.Regressed(); h.p == 0 && (regressed || s.Requested() != nil) {
		return errPast
	}
	return nil
}

// batchLimits keeps the producer's batches within what their topics take.
func (h *hold) batchLimits() kgo.Opt {
	state, limit, most := h.opts.offsetsTopic(), h.limit, h.stateLimit
	return kgo.ProducerBatchMaxBytesFn(func(topic string) int32 {
		if topic == state {
			return most
		}
		return limit
	})
}
