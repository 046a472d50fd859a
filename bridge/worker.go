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
	findings findings // each field has its own rule
}

// startWorker starts a worker. Fatal gets the error by which it ends before it is stopped.
func startWorker(inst *instance, p int32, hard context.Context, fatal func(error)) *worker {
	w := &worker{instance: inst, p: p, ended: make(chan struct{}), findings: findings{failed: make(chan struct{}, 1)}}
	w.hard, w.endHard = context.WithCancel(hard)
	w.soft, w.endSoft = context.WithCancel(w.hard)
	crash.Go(hard, "worker", func() {
		defer close(w.ended)
		defer w.endHard()
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
	t := time.AfterFunc(w.instance.opts.Pace.Shutdown, w.endHard)
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
		defer co.bundler.close() // behind the release, which ends what it reads
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
		t.keepSweep(s)
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
	if err := pause.For(ctx, t.opts.Kafka.Session); err != nil && !errors.Is(err, errMoved) {
		return err
	}
	return nil
}
