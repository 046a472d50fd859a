package bridge

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/envelope"
	"blobfeed/offsets"
	"blobfeed/source"
)

// worker holds one lease for as long as the group leaves it here.
type worker struct {
	*Bridge
	p int32

	soft, hard context.Context // soft: commit and go; hard: go
	endSoft    context.CancelFunc
	endHard    context.CancelFunc
	ended      chan struct{}

	fenced  bool                            // the lease was lost to another producer
	doubted string                          // lost history that an earlier hold found
	failed  atomic.Pointer[offsets.Failure] // the last error that was tried again
	trouble chan struct{}                   // capacity 1: there is one

	// Of the lease being held; without one they are hard and soft. See holding.
	held, work context.Context
	over       func(*offsets.State) error

	// Of the lease being held:
	lease  *offsets.Lease
	limit  int32 // bytes of a batch that the topics take
	most   int32 // bytes of a document that the state's topic takes
	cursor *offsets.Cursor
	txn    txn
	ahead  *ahead // of lease 0
	left   backlog

	outlets  outlets
	frontier *offsets.Frontier  // the one that resolved and the check below belong to
	promised envelope.Timestamp // frontier.Resolved, parsed
	filter   envelope.Filter    // with the frontier's start and our end

	epochHeader []kgo.RecordHeader // of every record, or none
}

func startWorker(b *Bridge, p int32) *worker {
	w := &worker{Bridge: b, p: p, ended: make(chan struct{}), trouble: make(chan struct{}, 1)}
	w.hard, w.endHard = context.WithCancel(b.hard)
	w.soft, w.endSoft = context.WithCancel(w.hard)
	w.held, w.work = w.hard, w.soft
	go func() {
		defer close(w.ended)
		defer w.endHard()
		if err := w.run(); err != nil {
			b.fatal(err)
		}
	}()
	return w
}

// stop asks the worker to end; at the latest after the shutdown timeout it does.
func (w *worker) stop(now bool) {
	w.endSoft()
	if now {
		w.endHard()
		return
	}
	t := time.AfterFunc(w.Shutdown, w.endHard)
	context.AfterFunc(w.hard, func() { t.Stop() })
}

// run holds the lease again and again: every error of Kafka means that the outcome of a transaction may be unknown, and
// only a new acquisition, which fences the old producer and then reads the cursor, tells.
func (w *worker) run() error {
	err := w.retry(w.soft, w.p, func(context.Context) error {
		err := w.hold()
		for errors.Is(err, errReacquire) && w.soft.Err() == nil {
			err = w.hold()
		}
		w.fenced = errors.Is(err, offsets.ErrFenced)
		err = w.explain(err)
		if w.soft.Err() != nil {
			if err != nil && !errors.Is(err, context.Canceled) {
				w.Observer.Failed(w.p, err) // retry won't: it sees the stop
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

// hold acquires the lease when there is work for it, and works until the stop or an error.
func (w *worker) hold() error {
	if err := w.giveWay(); err != nil {
		return err
	}
	if err := w.awaitWork(); err != nil {
		return err
	}
	var err error
	if w.limit, err = w.messageLimit(w.soft); err != nil {
		return err
	}
	if w.most, err = w.stateLimit(w.soft); err != nil {
		return err
	}
	lease, err := offsets.Acquire(w.soft, w.cfg, w.view, w.p, w.batchLimits())
	if err != nil {
		return err
	}
	end := w.holding(lease)
	defer func() {
		end()
		lease.Close(w.hard)
		w.lease = nil
		w.stopReading()
		w.memory.release(w.txn.held)
		w.txn.drop()
		w.pool.drop()
	}()
	w.lease, w.cursor = lease, lease.Cursor()
	w.frontier = nil // what a failed transaction promised is void
	w.Log.Debug("lease acquired", "lease", w.p, "segment", w.cursor.Segment)
	if err := w.discard(lease); err != nil {
		return err
	}
	for w.work.Err() == nil {
		if err := w.step(); err != nil {
			w.traceRecords(err)
			if w.held.Err() != nil {
				return context.Cause(w.held)
			}
			return err
		}
	}
	return context.Cause(w.held) // nil at a stop
}

// giveWay waits after another instance has taken the lease: for a session, in which the group tells this one that it
// is no
// longer ours. Two instances that take it back at once would keep fencing each other. After a move nobody else wants
// it.
func (w *worker) giveWay() error {
	s, _, err := w.view.Get()
	if err != nil || !w.fenced || s.Owners[w.p] == w.Instance {
		return err
	}
	ctx, cancel := w.until(w.soft, func(s *offsets.State) error {
		if s.Moving {
			return errMoved
		}
		return nil
	})
	defer cancel()
	if err := sleep(ctx, w.Session); err != nil && !errors.Is(err, errMoved) {
		return err
	}
	return nil
}

// awaitWork returns when the current segment has shards of this lease. Lease 0 always has work: the frontier.
// A producer for each lease that never gets a shard would cost the brokers something and bring nothing.
//
// Nothing is decided here but whether to acquire: what the view shows may be old, and what is gone may be delivered by
// another owner by now.
func (w *worker) awaitWork() error {
	if w.p == 0 {
		return nil
	}
	for {
		s, changed, err := w.view.Get()
		if err != nil {
			return err
		}
		if w.caughtUp(s) && s.Moving && !w.Transactional && !s.EnteredBy(w.p) {
			return nil
		}
		f := s.Frontier
		if w.caughtUp(s) && f != nil && f.Current != (source.Segment{}) && !s.Cursor(w.p).Finished(f.Current) {
			m, _, err := w.current(s)
			if errors.Is(err, errPast) {
				continue
			}
			if err != nil {
				return err
			}
			if len(w.shards(m)) > 0 {
				return nil
			}
		}
		if err := w.wait(changed); err != nil {
			return err
		}
	}
}

// step does one thing: a move of the frontier, a pass over the current segment, or a wait for either.
func (w *worker) step() error {
	s, changed, err := w.view.Get()
	if err != nil {
		return err
	}
	if err := w.over(s); err != nil {
		return err
	}
	if err := w.lease.Check(); err != nil {
		return err
	}
	if err := w.see(s.Frontier); err != nil {
		return err
	}
	if w.p == 0 {
		moved, err := w.moveFrontier(s)
		if err != nil || moved {
			return err
		}
	}
	// in place of a fence: what comes after it is of the new epoch
	if s.Moving && !w.Transactional && w.p != 0 && !s.EnteredBy(w.p) {
		return w.lease.Commit(w.held, w.cursor, nil)
	}
	f := s.Frontier
	if f == nil || f.Current == (source.Segment{}) || w.cursor.Finished(f.Current) || w.cursor.Beyond(f) {
		return w.wait(changed)
	}
	m, gap, err := w.current(s) // I7: the status first
	if errors.Is(err, errPast) {
		return nil
	}
	if err != nil {
		return err
	}
	shards := w.shards(m)
	if len(shards) == 0 {
		return w.wait(changed)
	}
	if gap == nil {
		err = w.deliver(m, shards)
		if errors.Is(err, errPast) {
			return errMoved
		}
		if !errors.As(err, &gap) {
			return err
		}
	}
	return w.lose(gap)
}

// see takes note of a frontier: whether it fits our settings, and what was promised.
func (w *worker) see(f *offsets.Frontier) error {
	if f == nil || f == w.frontier {
		return nil
	}
	if err := w.Compatible(f.Feed, f.Settings); err != nil {
		return err
	}
	promised, err := parseTime(f.Resolved)
	if err != nil {
		return err
	}
	start, err := parseTime(f.Start)
	if err != nil {
		return err
	}
	w.promised, w.filter = promised, w.Filter
	w.filter.From, w.filter.To = start, w.End
	w.epochHeader = nil
	if w.EpochHeader {
		w.epochHeader = []kgo.RecordHeader{{Key: "epoch", Value: strconv.AppendInt(nil, f.Epoch, 10)}}
	}
	w.frontier = f
	w.outlets.reset(w.cursor, f)
	return nil
}

// parseTime parses a time of the frontier; "" is zero.
func parseTime(s string) (envelope.Timestamp, error) {
	if s == "" {
		return envelope.Timestamp{}, nil
	}
	return envelope.ParseTimestamp(s)
}

// shards returns those of the segment that belong to this lease.
func (w *worker) shards(m source.Manifest) []int { return w.of(int(w.p), m) }

// of returns the shards of the segment that belong to a lease.
func (b *Bridge) of(lease int, m source.Manifest) (own []int) {
	for _, shard := range m.Shards {
		if shard%b.leases == lease {
			own = append(own, shard)
		}
	}
	return own
}

// wait returns when the state changes, or when it is time to look at the feed again.
func (w *worker) wait(changed <-chan struct{}) error {
	w.Observer.Active(w.p, Waiting)
	defer w.Observer.Active(w.p, Working)
	t := time.NewTimer(w.PollInterval)
	defer t.Stop()
	select {
	case <-changed:
	case <-t.C:
		w.pool.drop() // nothing came for so long
	case <-w.work.Done():
		return context.Cause(w.work)
	}
	return nil
}

// current reads the manifest of the current segment in s, for as long as it takes: trouble with the store is no
// reason to give
// up a lease. If retention has removed it, it returns the loss, and the manifest as the frontier remembers it.
func (w *worker) current(s *offsets.State) (m source.Manifest, gap *GapError, err error) {
	ctx, done := w.during(s.Frontier.Current)
	defer done()
	m, err = w.manifest(ctx, s.Frontier.Current)
	if errors.As(err, &gap) {
		return w.remembered(s), gap, nil
	}
	return m, nil, err
}

// manifest reads the manifest of seg. The error is a GapError if retention has removed it.
func (w *worker) manifest(ctx context.Context, seg source.Segment) (m source.Manifest, err error) {
	err = w.ask(ctx, func(ctx context.Context) error {
		if m, err = w.manifests.get(ctx, seg); err != nil {
			return w.lost(ctx, seg, err)
		}
		return nil
	})
	return m, err
}
