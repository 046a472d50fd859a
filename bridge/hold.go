package bridge

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/envelope"
	"blobfeed/internal/topicname"
	"blobfeed/internal/topics"
	"blobfeed/offsets"
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
	epoch      int64           // of the state behind the fence
	lease      *offsets.Lease  // nil before the acquisition
	cursor     *offsets.Cursor // of what is committed, and of what is in the open transaction
	basis      basis
	out        writer
	delivery   *delivery // of the current segment; nil: none has begun
	limit      int32     // immutable: bytes of a batch that the topics take
	stateLimit int32     // immutable: bytes of a document that the state's topic takes

	findings *findings // of the worker; guards itself

	rounds rounds // of lease 0, while a scan is under way
}

func newHold(w *worker) *hold {
	h := &hold{shared: w.shared, opts: w.shared.opts, p: w.p, held: w.hard, work: w.soft, findings: &w.findings}
	h.basis.h, h.out.h = h, h
	return h
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

// release gives the lease up. What is in the open transaction is aborted.
func (h *hold) release(hard context.Context) {
	h.cancel()
	h.lease.Close(hard)
	h.out.abandon()
	h.shared.pipe.DropBuffers()
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

// during returns a context of a task, which ends with the work, or with errPast when the state gives another task.
func (h *hold) during(t task) (context.Context, context.CancelFunc) {
	ctx, stop := h.work, context.CancelFunc(func() {})
	if left := h.rounds.next.Sub(h.opts.Now()); left > 0 { // the keeper has another round to begin
		ctx, stop = context.WithTimeoutCause(ctx, left, errPast)
	}
	ctx, cancel := h.until(ctx, func(s *offsets.State) error {
		if h.task(s) != t {
			return errPast
		}
		return nil
	})
	return ctx, func() { cancel(); stop() }
}

// task returns what the lease has to do in a state.
func (h *hold) task(s *offsets.State) task { return taskOf(s, h.p, h.opts.Transactional) }

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

// discard ends what the brokers left open of the lease's last transaction, if there is such a thing (I1, I2): its
// cursor does not count, so its records are delivered again, and must not become visible by the end of a transaction
// of ours. In partitions where the brokers did write the end they are doubled; nothing is lost.
func (sh *shared) discard(ctx context.Context, lease *offsets.Lease) error {
	known, ok := lease.State().Torn(lease.Partition)
	if !ok {
		return nil
	}
	sh.opts.Log.Warn("the brokers did not complete a commit that they acknowledged; delivering its records again",
		"lease", lease.Partition, "effect", "some records may be doubled")
	ends := map[string]int32{}
	for topic, partitions := range known {
		ends[topic] = partitions
		if sh.opts.Markers == envelope.MarkersTopic {
			ends[topicname.Markers(topic)] = partitions
		}
	}
	if sh.opts.DeadLetter != "" {
		ends[sh.opts.DeadLetter] = 1 // where dead letters go
	}
	for topic, partitions := range ends {
		counts, err := topics.Count(ctx, kadm.NewClient(sh.client), topic)
		var gone *topics.MissingError // deleted after a reset
		if err != nil && !errors.As(err, &gone) {
			return err
		}
		ends[topic] = min(partitions, counts[topic])
	}
	return lease.Discard(ctx, ends)
}
