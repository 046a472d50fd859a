package bridge

import (
	"cmp"
	"context"
	"errors"
	"time"

	"blobfeed/internal/pause"
	"blobfeed/offsets"
	"blobfeed/source"
)

// worker works on one lease for as long as the group leaves it here: it acquires the lease, delivers, commits, and
// releases it. It has one goroutine; stop may be called from others.
type worker struct {
	shared *shared // immutable
	p      int32   // immutable

	soft, hard       context.Context // immutable; soft: commit and end; hard: end
	endSoft, endHard context.CancelFunc
	ended            chan struct{} // closed when the goroutine has ended

	fenced   bool     // the lease was lost to another producer; of the goroutine
	findings findings // guards itself
}

// startWorker starts a worker. Fatal gets the error by which it ends before it is stopped.
func startWorker(sh *shared, p int32, hard context.Context, fatal func(error)) *worker {
	w := &worker{shared: sh, p: p, ended: make(chan struct{}), findings: findings{failed: make(chan struct{}, 1)}}
	w.hard, w.endHard = context.WithCancel(hard)
	w.soft, w.endSoft = context.WithCancel(w.hard)
	w.findings.life = w.soft
	go func() {
		defer close(w.ended)
		defer w.endHard()
		defer w.findings.stopSweep()
		if err := w.run(); err != nil {
			fatal(err)
		}
	}()
	return w
}

// stop asks the worker to commit and end. With now, or after the shutdown timeout, it ends without a commit.
func (w *worker) stop(now bool) {
	w.endSoft()
	if now {
		w.endHard()
		return
	}
	t := time.AfterFunc(w.shared.opts.Shutdown, w.endHard)
	context.AfterFunc(w.hard, func() { t.Stop() })
}

// run holds the lease again and again: every error of Kafka means that the outcome of a transaction may be unknown, and
// only a new acquisition, which fences the old producer and then reads the cursor, shows it.
func (w *worker) run() error {
	err := w.shared.retry(w.soft, w.p, func(context.Context) error {
		err := w.holdOnce()
		for errors.Is(err, errReacquire) && w.soft.Err() == nil {
			err = w.holdOnce()
		}
		w.fenced = errors.Is(err, offsets.ErrFenced)
		err = w.shared.explain(w.p, err)
		if w.soft.Err() != nil {
			if err != nil && !errors.Is(err, context.Canceled) {
				w.shared.opts.Observer.Failed(w.p, err) // retry won't: the stop ends it
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
	h := &hold{
		shared: w.shared, opts: w.shared.opts, p: w.p, held: w.hard, work: w.soft, findings: &w.findings,
	}
	if err := w.giveWay(h); err != nil {
		return err
	}
	if err := h.loop(func(s *offsets.State) (todo, error) { return w.awaitWork(h, s) }); err != nil {
		return err
	}
	if err := h.acquire(w.soft, w.hard); err != nil {
		return err
	}
	basis := &basis{h: h}
	out := &writer{h: h, basis: basis}
	keeper := &keeper{h: h, basis: basis, w: out, rules: newRules(h.opts, h.shared.leases)}
	defer func() {
		h.release(w.hard)
		keeper.dropBundle()
		keeper.stopReading()
		out.abandon()
		w.shared.pipe.DropBuffers()
	}()
	h.opts.Log.Debug("lease acquired", "lease", w.p, "segment", h.cursor.Segment)
	if err := h.shared.discard(h.held, h.lease); err != nil {
		return err
	}
	err := h.loop(func(s *offsets.State) (todo, error) {
		if err := cmp.Or(h.endedBy(s), h.lease.Check()); err != nil {
			return todoWait, err
		}
		if err := basis.adopt(s); err != nil {
			return todoWait, err
		}
		if s.Frontier != nil && !s.Frontier.Scan.Active() {
			h.cursor.Scan = nil
			h.findings.stopSweep()
		}
		if w.p == 0 {
			if moved, err := keeper.step(s); moved || err != nil {
				return todoAgain, err
			}
		}
		return w.work(out, s)
	})
	if out.tx != nil {
		out.trace(err) // it is given up
	}
	if h.held.Err() != nil {
		return context.Cause(h.held)
	}
	return err
}

// giveWay waits after another instance has taken the lease: for a session, after which the group has reported whether
// the lease is still ours. Two instances that take it back at once would keep fencing each other. After a move nobody
// else wants it.
func (w *worker) giveWay(h *hold) error {
	s, _, err := w.shared.view.Get()
	owner := s.Owners[w.p]
	if err != nil || !w.fenced || owner == h.opts.Instance || owner == "" {
		return err
	}
	ctx, cancel := h.until(w.soft, func(s *offsets.State) error {
		if s.Moving {
			return errMoved
		}
		return nil
	})
	defer cancel()
	if err := pause.For(ctx, h.opts.Session); err != nil && !errors.Is(err, errMoved) {
		return err
	}
	return nil
}

// awaitWork returns todoEnd when the current segment has shards of this lease. Lease 0 always has work: the frontier. A
// producer for each lease that never gets a shard would cost the brokers something and bring nothing.
//
// It decides nothing else: the view may be old, and another owner may have delivered the events that seem to be lost.
func (w *worker) awaitWork(h *hold, s *offsets.State) (todo, error) {
	f := s.Frontier
	switch {
	case w.p == 0:
		return todoEnd, nil
	case !w.shared.caughtUp(s):
		return todoWait, nil
	case w.mustEnter(s) || s.Owes(w.p):
		return todoEnd, nil
	case f == nil || f.Current == (source.Segment{}) || s.Cursor(w.p).Finished(f.Current) || f.Scan.Holds():
		return todoWait, nil
	}
	m, _, err := h.current(s)
	if errors.Is(err, errPast) {
		return todoAgain, nil
	}
	if err != nil || len(w.shared.shardsOf(w.p, m)) == 0 {
		return todoWait, err
	}
	return todoEnd, nil
}

// mustEnter reports whether the lease owes a cursor of the new epoch to a move, in place of a fence.
func (w *worker) mustEnter(s *offsets.State) bool {
	return s.Moving && !w.shared.opts.Transactional && w.p != 0 && !s.EnteredBy(w.p)
}

// work delivers the lease's part of the current segment, if there is one.
func (w *worker) work(out *writer, s *offsets.State) (todo, error) {
	h, f := out.h, s.Frontier
	switch {
	case w.mustEnter(s): // what comes after it is of the new epoch
		return todoAgain, h.lease.Commit(h.held, h.cursor, nil)
	case f != nil && f.Scan.Holds():
		return scanRound(out, s)
	case f == nil || f.Current == (source.Segment{}) || h.cursor.Finished(f.Current) || h.cursor.Beyond(f):
		return todoWait, nil // I4: only the current segment
	}
	m, gap, err := h.current(s) // I7: the status first
	if errors.Is(err, errPast) {
		return todoAgain, nil
	}
	if err != nil {
		return todoWait, err
	}
	d := &delivery{h: h, basis: out.basis, w: out, m: m, shards: w.shared.shardsOf(w.p, m)}
	if len(d.shards) == 0 {
		return todoWait, nil
	}
	if gap == nil {
		err = d.deliver()
		if errors.Is(err, errPast) {
			return todoWait, errMoved
		}
		if !errors.As(err, &gap) {
			return todoAgain, err
		}
	}
	return todoAgain, d.lose(gap)
}
