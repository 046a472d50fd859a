package bridge

import (
	"cmp"
	"context"
	"errors"
	"time"

	"blobfeed/internal/crash"
	"blobfeed/internal/pause"
	"blobfeed/offsets"
)

// worker works on one lease for as long as the group leaves it here: it acquires the lease, delivers, commits, and
// releases it. It has one goroutine; stop may be called from others.
type worker struct {
	instance *instance // immutable
	p        int32     // immutable

	soft, hard       context.Context // immutable; soft: commit and end; hard: end
	endSoft, endHard context.CancelFunc
	ended            chan struct{} // closed when the goroutine has ended

	fenced   bool     // the lease was lost to another producer; of the goroutine
	findings findings // guards itself
}

// startWorker starts a worker. Fatal gets the error by which it ends before it is stopped.
func startWorker(inst *instance, p int32, hard context.Context, fatal func(error)) *worker {
	w := &worker{instance: inst, p: p, ended: make(chan struct{}), findings: findings{failed: make(chan struct{}, 1)}}
	w.hard, w.endHard = context.WithCancel(hard)
	w.soft, w.endSoft = context.WithCancel(w.hard)
	w.findings.life = w.soft
	crash.Go(hard, "worker", func() {
		defer close(w.ended)
		defer w.endHard()
		defer w.findings.stopSweep()
		if err := w.run(); err != nil {
			fatal(err)
		}
	})
	return w
}

// stop asks the worker to commit and end. With now, or after the shutdown timeout, it ends without a commit.
func (w *worker) stop(now bool) {
	w.endSoft()
	if now {
		w.endHard()
		return
	}
	t := time.AfterFunc(w.instance.opts.Shutdown, w.endHard)
	context.AfterFunc(w.hard, func() { t.Stop() })
}

// run holds the lease again and again: every error of Kafka means that the outcome of a transaction may be unknown, and
// only a new acquisition, which fences the old producer and then reads the cursor, shows it.
func (w *worker) run() error {
	err := w.instance.retry(w.soft, w.p, func(context.Context) error {
		err := w.holdOnce()
		for errors.Is(err, errReacquire) && w.soft.Err() == nil {
			err = w.holdOnce()
		}
		w.fenced = errors.Is(err, offsets.ErrFenced)
		err = w.instance.explain(w.p, err)
		if w.soft.Err() != nil {
			if err != nil && !errors.Is(err, context.Canceled) {
				w.instance.opts.Observer.Failed(w.p, err) // retry won't: the stop ends it
			}
			return nil
		}
		return err
	})
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// holdOnce acquires the lease when there is work for it, and works until the stop or an error.
func (w *worker) holdOnce() error {
	t := newTenure(w)
	if err := w.giveWay(t); err != nil {
		return err
	}
	if err := t.loop(t.awaitWork); err != nil {
		return err
	}
	if err := t.acquire(w.soft, w.hard); err != nil {
		return err
	}
	step := t.step
	if w.p == 0 {
		co := newCoordinator(t)
		defer co.close() // behind the release, which ends what it reads
		step = co.stepFirst
	}
	defer t.release(w.hard)
	t.opts.Log.Debug("lease acquired", "lease", w.p, "segment", t.cursor.Segment)
	if err := t.instance.discard(t.held, t.lease); err != nil {
		return err
	}
	err := t.loop(func(s *offsets.State) (todo, error) {
		if err := cmp.Or(t.endedBy(s), t.lease.Check(), t.epoch.adopt(s)); err != nil {
			return todoWait, err
		}
		if s.Frontier != nil && !s.Frontier.Scan.Active() {
			t.cursor.Scan = nil
		}
		t.findings.keepSweep(s)
		return step(s)
	})
	if t.out.tx != nil {
		t.out.trace(err) // it is given up
	}
	if t.held.Err() != nil {
		return context.Cause(t.held)
	}
	return err
}

// giveWay waits after another instance has taken the lease: for a session, after which the group has reported whether
// the lease is still ours. Two instances that take it back at once would keep fencing each other. After a move nobody
// else wants it.
func (w *worker) giveWay(t *tenure) error {
	s, _, err := w.instance.view.Get()
	owner := s.Owners[w.p]
	if err != nil || !w.fenced || owner == t.opts.Instance || owner == "" {
		return err
	}
	ctx, cancel := t.until(w.soft, func(s *offsets.State) error {
		if s.Moving {
			return errMoved
		}
		return nil
	})
	defer cancel()
	if err := pause.For(ctx, t.opts.Session); err != nil && !errors.Is(err, errMoved) {
		return err
	}
	return nil
}

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
// repeated, for as long as it takes: a failure of the store is no reason to give up a lease.
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
			if err := t.recovered(); err != nil {
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

// failed reports a look that has failed so many times in a row, and waits before the next. It returns an error that no
// other look can help.
func (t *tenure) failed(err error, times int, s *offsets.State) error {
	if permanent(err) {
		return err
	}
	if t.opts.Once && times >= onceAttempts {
		return &givenUpError{err}
	}
	t.opts.Observer.Failed(t.p, err)
	t.findings.remember(t.work, t.opts.Now(), err)
	if err := t.commitFailure(); err != nil {
		return err
	}
	ctx, done := t.until(t.work, func(now *offsets.State) error { // another frontier may need another look
		if now.Frontier != s.Frontier || (now.Requested() == nil) != (s.Requested() == nil) {
			return errPast
		}
		return nil
	})
	defer done()
	_ = pause.For(ctx, delay(times)) // the loop sees why it ended
	return nil
}

// wait returns when the state changes, when it is time to look at the feed again, or when the work of the tenure ends.
func (t *tenure) wait(changed <-chan struct{}) {
	until := t.opts.PollInterval
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
	t.findings.keepSweep(s)
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
		return todoAgain, t.holdRound(s.Frontier.Scan)
	case lists:
		return todoAgain, t.listRound(do, s)
	case delivers:
		return t.deliver(do, s)
	}
	return todoWait, nil
}
