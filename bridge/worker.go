package bridge

import (
	"context"
	"errors"
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

	// drained is the open segment that was read to the end of its listing at least once since the start.
	drained atomic.Pointer[source.Segment]

	fenced  bool                            // the lease was lost to another producer
	failed  atomic.Pointer[offsets.Failure] // the last error that was tried again
	trouble chan struct{}                   // capacity 1: there is one

	// Of the lease being held:
	lease  *offsets.Lease
	limit  int32 // bytes of a batch that the topics take
	cursor *offsets.Cursor
	txn    txn
	ahead  *ahead // of lease 0
	left   backlog

	outlets  outlets
	frontier *offsets.Frontier  // the one that resolved and the check below belong to
	promised envelope.Timestamp // frontier.Resolved, parsed
	filter   envelope.Filter    // with the frontier's start and our end
}

func startWorker(b *Bridge, p int32) *worker {
	w := &worker{Bridge: b, p: p, ended: make(chan struct{}), trouble: make(chan struct{}, 1)}
	w.hard, w.endHard = context.WithCancel(b.hard)
	w.soft, w.endSoft = context.WithCancel(w.hard)
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
		w.fenced = errors.Is(err, offsets.ErrFenced)
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
	if w.limit, err = w.messageLimit(w.hard); err != nil {
		return err
	}
	lease, err := offsets.Acquire(w.hard, w.cfg, w.view, w.p, kgo.ProducerBatchMaxBytes(w.limit))
	if err != nil {
		return err
	}
	defer func() {
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
	for w.soft.Err() == nil {
		if err := w.step(); err != nil {
			w.traceRecords(err)
			return err
		}
	}
	return nil
}

// giveWay waits when another instance has taken the lease: for as long as it may take us to hear from the group that it is no
// longer ours. Were it taken back at once, the two would fence each other in turn until then, and neither would get on.
func (w *worker) giveWay() error {
	s, _, err := w.view.Get()
	if err != nil || !w.fenced || s.Owners[w.p] == w.Instance {
		return err
	}
	return sleep(w.soft, w.Session)
}

// awaitWork returns when the current segment has shards of this lease. Lease 0 always has work: the frontier.
// A producer for each lease that never gets a shard would cost the brokers something and bring nothing.
func (w *worker) awaitWork() error {
	if w.p == 0 {
		return nil
	}
	for {
		s, changed, err := w.view.Get()
		if err != nil {
			return err
		}
		if f := s.Frontier; f != nil && f.Current != (source.Segment{}) && !s.Cursor(w.p).Finished(f.Current) {
			m, err := w.manifest(f.Current)
			if err != nil && !w.othersGap(err) {
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
	if s.Owners[w.p] != w.Instance {
		return offsets.ErrFenced // our cursor may be void, and without something to write we would not notice
	}
	if w.cursor.Epoch < s.Epoch { // a seek, since we took the lease: I3, the cursor that counts is the one that is read after that
		w.cursor = s.Cursor(w.p)
	}
	if c := s.Cursors[w.p]; c != nil && w.cursor.Done && !c.Finished(w.cursor.Segment) {
		// Without transactions nothing stops an owner that was paused for long. Its cursor is the last, and so the one that counts.
		return errors.New("a former owner of the lease has written a cursor: reading on from there")
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
	f := s.Frontier
	if f == nil || f.Current == (source.Segment{}) || w.cursor.Finished(f.Current) || w.cursor.Beyond(f) {
		return w.wait(changed)
	}
	m, err := w.manifest(f.Current) // I7: the status first
	if err != nil && !w.othersGap(err) {
		return err
	}
	if shards := w.shards(m); len(shards) > 0 {
		return w.work(m, shards)
	}
	return w.wait(changed)
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

// othersGap reports whether err is lost history that the owner of lease 0 will skip.
func (w *worker) othersGap(err error) bool {
	var gap *GapError
	return w.p != 0 && w.SkipGaps && errors.As(err, &gap)
}

// shards returns those of the segment that belong to this lease.
func (w *worker) shards(m source.Manifest) []int {
	var own []int
	for _, shard := range m.Shards {
		if shard%w.leases == int(w.p) {
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
	case <-w.soft.Done():
		return w.soft.Err()
	}
	return nil
}

// manifest reads the manifest of seg, for as long as it takes: trouble with the store is no reason to give up a lease.
func (w *worker) manifest(seg source.Segment) (m source.Manifest, err error) {
	err = w.ask(func(ctx context.Context) error {
		if m, err = w.manifests.get(ctx, seg); err != nil {
			return w.lost(ctx, seg, err)
		}
		return nil
	})
	return m, err
}
