package bridge

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/internal/crash"
	"blobfeed/internal/suspects"
	"blobfeed/offsets"
)

// A tenure of a lease, and the work on a segment, end when the state says so, whatever the worker waits for at that
// moment: a retry, a poll, a free buffer, an answer of a broker. A wait that outlives its reason blocks the move that
// ended it. So every wait uses one of three contexts, or one that is derived from them with a deadline:
//
//	held    ends with the lease (another owner, another epoch) or a hard stop: for commits
//	work    ends with held, or at a stop
//	during  ends with work, when the state gives the lease another task, or when a round is due for the coordinator
//
// Before the acquisition there is no lease to end: held and work are the worker's contexts, hard and soft.

// errReacquire ends a tenure that another one follows at once: its fence is later than what was found.
var errReacquire = errors.New("the lease has to be acquired again")

var (
	// errMoved also stands for a pass or a round whose task is over: what is open is dropped with the tenure.
	errMoved = fmt.Errorf("%w: the frontier was moved", errReacquire)
	errDoubt = fmt.Errorf("%w: what seems to be lost may be delivered by another owner", errReacquire)
	// errPast ends the work on a task that is not the lease's any more.
	errPast = errors.New("the task is over")
	// errPause ends a pass for a round of a scan, or for what the coordinator has to do. Its segment stays current, so
	// what it has delivered is committed, and another pass follows.
	errPause = fmt.Errorf("%w: delivery pauses", errPast)
)

// tenure is what a worker knows from before one acquisition of its lease to the release of it. It belongs to the
// worker's goroutine; those of shards use only what is immutable or guards itself.
type tenure struct {
	instance *instance // immutable
	opts     *Options  // immutable
	p        int32     // immutable

	held, work context.Context // immutable from the acquisition on
	cancel     context.CancelFunc
	lease      *offsets.Lease  // nil before the acquisition
	cursor     *offsets.Cursor // of what is committed, and of what is in the open transaction
	epoch      epochView
	out        writer
	delivery   *delivery // of the current segment; nil: none has begun

	// sweep reads the topics for a sweep, over many rounds. Nil: none. It belongs to this tenure: another owner of the
	// lease may have written deletions since, which it has not read, and they would come once more.
	//
	//	this tenure                              another owner
	//	reads that key A lives, ends a round
	//	                                         fences it, reads A, and writes its deletion
	//	acquires the lease again, asks for A: 404
	//
	// The next tenure reads the topics behind its own fence, as it does the cursor (I3).
	sweep *suspects.Reader

	findings *findings // of the worker; see there which goroutine uses which field

	rounds rounds // of lease 0, while a scan is under way
}

func newTenure(w *worker) *tenure {
	t := &tenure{instance: w.instance, opts: w.instance.opts, p: w.p, held: w.hard, work: w.soft, findings: &w.findings}
	t.epoch.t, t.out.t = t, t
	return t
}

// acquire fences the former owner and reads the cursor. Soft and hard are the worker's contexts.
func (t *tenure) acquire(soft, hard context.Context) (err error) {
	if t.epoch.Topics, err = t.instance.catalog.ForLease(soft, t.instance.view); err != nil {
		return err
	}
	limits := kgo.ProducerBatchMaxBytesFn(t.epoch.Topics.BatchLimit)
	lease, err := offsets.Acquire(soft, t.instance.cfg, t.instance.view, t.p, limits) // I3: fence, then read
	if err != nil {
		return err
	}
	t.lease, t.cursor = lease, lease.Cursor()
	held, cancel := t.until(hard, t.endedBy)
	work, stop := context.WithCancelCause(held)
	unhook := context.AfterFunc(soft, func() { stop(context.Cause(soft)) })
	t.held, t.work = held, work
	t.cancel = func() {
		unhook()
		stop(nil)
		cancel()
	}
	return nil
}

// release gives the lease up. What is in the open transaction is aborted.
func (t *tenure) release(hard context.Context) {
	t.cancel()
	t.endSweep()
	t.lease.Close(hard)
	t.out.abandon()
	t.instance.pipe.DropBuffers()
}

// keepSweep ends the sweep unless it is of the scan that the state has: while this tenure lasts, a scan may be
// cancelled, and another one begin in its place.
func (t *tenure) keepSweep(s *offsets.State) {
	if t.sweep == nil {
		return
	}
	if s.Frontier == nil || !s.Frontier.Scan.Active() || s.Frontier.Scan.ID != t.sweep.Scan {
		t.endSweep()
	}
}

// endSweep ends the sweep, if there is one.
func (t *tenure) endSweep() {
	if t.sweep != nil {
		t.sweep.Stop()
		t.sweep = nil
	}
}

// endedBy returns why the tenure ends in a state, nil if it does not. A lease that writes nothing would not notice
// otherwise: an idle account's segment stays open for days.
func (t *tenure) endedBy(s *offsets.State) error {
	switch {
	case s.Term(t.p) != t.lease.Term():
		return offsets.ErrFenced
	case s.Epoch != t.lease.State().Epoch: // I3: the cursor that counts is one that is read after the move
		return errMoved
	}
	return nil
}

// until returns a context that ends when over returns an error for the state, with that error as its cause.
func (t *tenure) until(parent context.Context, over func(*offsets.State) error) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(parent)
	crash.Go(ctx, "watch", func() {
		var cause error
		isOver := func(s *offsets.State) bool { cause = over(s); return cause != nil }
		if _, err := t.instance.view.Await(ctx, isOver); err != nil {
			cause = err
		}
		cancel(cause)
	})
	return ctx, func() { cancel(nil) }
}

// during returns a context of a task, which ends with the work, or with errPast or errPause when the state gives
// another task, or with errPause when the coordinator's next round is due.
func (t *tenure) during(do task) (context.Context, context.CancelFunc) {
	ctx, stop := t.work, context.CancelFunc(func() {})
	if left := t.rounds.next.Sub(t.opts.Now()); left > 0 { // the coordinator has another round to begin
		ctx, stop = context.WithTimeoutCause(ctx, left, errPause)
	}
	ctx, cancel := t.until(ctx, func(s *offsets.State) error {
		switch now := t.task(s); {
		case now == do:
			return nil
		case do.kind == delivers && (now.kind == holds || now.kind == delivers) && s.Frontier.At() == do.segment:
			return errPause
		}
		return errPast
	})
	return ctx, func() { cancel(); stop() }
}

// task returns what the lease has to do in a state.
func (t *tenure) task(s *offsets.State) task { return taskOf(s, t.p, t.opts.Kafka.Transactional) }
