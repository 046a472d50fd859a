package bridge

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"blobfeed/offsets"
	"blobfeed/source"
)

// prefetch is how many encoded blocks a shard may be ahead of the transaction.
const prefetch = 8

// deliver delivers a segment's shards of this lease, pass after pass, until it is finalized and delivered, or the stop.
func (w *worker) deliver(m source.Manifest, shards []int) error {
	ctx, done := w.during(m.Segment)
	defer done()
	readers := map[int]*source.ShardReader{}
	w.left.reset()
	for {
		for _, shard := range shards {
			if readers[shard] == nil { // also one that appears late in an open segment
				readers[shard] = w.Feed.Shard(m, shard, w.cursor.At(m.Segment, shard))
			}
		}
		read := w.cursor.Counts.Read
		stuck, err := w.pass(ctx, m, shards, readers)
		if err != nil {
			return err
		}
		if m.Finalized {
			return nil
		}
		for _, shard := range shards {
			// I1: what a shard has read and not delivered, since its topic has no encoder, is read again.
			if stuck && readers[shard].Position() != w.cursor.At(m.Segment, shard) {
				delete(readers, shard)
			}
		}
		w.pool.drop()
		w.wake()
		if m, err = w.awaitMore(ctx, m, w.cursor.Counts.Read > read, stuck); err != nil {
			return err
		}
		shards = w.shards(m)
	}
}

// awaitMore returns the manifest when it is time to list the shards of an open segment again.
//
// Events come in the time of their segment or soon after, but an idle account's last segment stays open for days. Its end
// shows in the manifest, so the shards need no listing each time. The clock decides only how often to look.
func (w *worker) awaitMore(ctx context.Context, m source.Manifest, moved, stuck bool) (source.Manifest, error) {
	drained := func() {
		if !stuck {
			w.Observer.Active(w.p, Drained)
		}
	}
	drained()
	defer w.Observer.Active(w.p, Working)
	quiet := !moved && !stuck && w.Now().After(m.Begin.Add(m.Interval+segmentSlack))
	for waited := time.Duration(0); ; {
		if err := sleep(ctx, w.PollInterval); err != nil {
			return m, err
		}
		waited += w.PollInterval
		next, err := w.manifest(ctx, m.Segment)
		if err != nil || next.Finalized || len(next.Shards) != len(m.Shards) || !quiet || waited >= w.QuietInterval {
			return next, err
		}
		drained() // still, and what failed before succeeds
	}
}

// footprints is how much memory a byte of a record takes at most with all that is kept beside it, where filters leave
// most events.
const footprints = 4

// pass reads every shard to the end of a listing taken after the manifest was read, and commits what it finds. Stuck says that
// a shard of an open segment is damaged, and stays where it is: the pass ends without it, so that the others are listed again,
// and it is told when the segment is finalized, which may be what its damage waits for.
func (w *worker) pass(
	ctx context.Context, m source.Manifest, shards []int, readers map[int]*source.ShardReader,
) (stuck bool, _ error) {
	w.memory.passing.Add(1)
	ctx, cancel := context.WithCancelCause(ctx)
	out := make(chan *batch, prefetch*len(shards))
	var reading sync.WaitGroup
	var damaged atomic.Bool
	for _, shard := range shards {
		reading.Go(func() {
			switch err := (&shardPass{worker: w, m: m, shard: shard, r: readers[shard], out: out}).run(ctx); {
			case errors.Is(err, errStays):
				damaged.Store(true)
			case err != nil:
				cancel(err) // also where another shard tries again for ever
			}
		})
	}
	go func() {
		reading.Wait()
		close(out)
	}()
	defer func() { // the readers must be gone before the lease is
		cancel(nil)
		for b := range out {
			w.memory.release(b.held)
		}
		w.memory.passing.Add(-1)
	}()

	w.txn.reset(m.Segment)
	flush := time.NewTimer(0)
	defer flush.Stop()
	<-flush.C
	for {
		select {
		case b, ok := <-out:
			if !ok {
				stuck = damaged.Load()
				return stuck, w.endPass(m, shards, readers, stuck, context.Cause(ctx))
			}
			if w.txn.began.IsZero() {
				flush.Reset(w.CommitInterval)
			}
			if err := w.add(b); err != nil {
				return false, err
			}
			if w.txn.full(w.TxnRecords, w.TxnBytes, min(w.memory.share(), footprints*int64(w.TxnBytes))) {
				flush.Stop()
				if err := w.commit(); err != nil {
					return false, err
				}
			}
		case <-flush.C:
			if err := w.commit(); err != nil {
				return false, err
			}
		case <-w.trouble:
			if w.txn.began.IsZero() { // else the commit that is due tells of it
				if err := w.tell(); err != nil {
					return false, err
				}
			}
		case <-w.work.Done():
			return false, errors.Join(context.Cause(w.work), w.commit()) // what is in out is dropped, and so are its readers
		}
	}
}

// endPass commits what the pass left open. If the segment is finalized, and every shard was read to the end of a
// listing made after that was known (I7), the cursor says that this lease is done.
func (w *worker) endPass(m source.Manifest, shards []int, readers map[int]*source.ShardReader, stuck bool, err error) error {
	if err == nil && m.Finalized {
		if done, err := w.listed(m.Segment, shards, readers); !done {
			return err // if there is none, step finds the segment gone
		}
	}
	if err == nil {
		w.txn.drained = !m.Finalized && !stuck
		for _, shard := range shards {
			if at := readers[shard].Modified(); w.txn.drained && at.After(w.txn.published) {
				w.txn.published = at
			}
		}
		if m.Finalized {
			w.cursor.Finish(m.Segment)
			w.txn.start()
		}
	}
	if errors.Is(err, errPast) { // I11: what is open is not for the segment that is current now
		return err
	}
	return errors.Join(err, w.commit())
}

// listed reports whether the listings of the shards of a finalized segment can be believed. One without chunks may be that of
// a shard without events, or of one that retention has removed since the manifest was read (I8); of others the reader knows
// where it was. The manifest tells, if it is read anew. That may take long, so what the transaction has goes before.
func (w *worker) listed(seg source.Segment, shards []int, readers map[int]*source.ShardReader) (bool, error) {
	now := time.Now()
	for _, shard := range shards {
		if readers[shard].Position() == (source.ShardPosition{}) {
			if err := w.commit(); err != nil {
				return false, err
			}
			return w.isThere(seg, now)
		}
	}
	return true, nil
}

// add puts a batch into the open transaction and moves the cursor over it. Both or neither: the cursor that is
// committed covers exactly the records of its transaction (I1).
func (w *worker) add(b *batch) error {
	w.txn.add(b)
	if err := w.produce(b); err != nil {
		return err
	}
	w.cursor.Advance(w.txn.segment, b.shard, b.events.Next)
	w.cursor.Gap = w.cursor.Gap || b.gap
	w.cursor.Pin(b.pins)
	w.left.set(b.shard, b.left)
	if len(b.records) == 0 { // I9: nothing of it waits for the commit
		w.txn.giveBack(b, w.memory)
		w.pool.put([]*batch{b})
	}
	return w.lease.Err()
}

func (w *worker) produce(b *batch) error {
	for i := range b.records {
		if err := w.lease.Produce(w.held, &b.records[i]); err != nil {
			return err
		}
	}
	return nil
}

func (w *worker) commit() error {
	if w.txn.began.IsZero() {
		return nil
	}
	w.txn.count(w.cursor)
	w.takeError()
	w.cursor.Ahead = w.left.total()
	if !w.Transactional {
		w.cursor.Resolved = w.frontier.Resolved
	}
	if err := w.lease.Commit(w.held, w.cursor, nil); err != nil {
		return err
	}
	w.committed()
	return nil
}

// committed tells of a transaction, and begins the account of the next.
func (w *worker) committed() {
	t := &w.txn
	if t.dead > 0 {
		w.Log.Warn("sent to the dead-letter topic", "lease", w.p, "topic", w.DeadLetter, "letters", t.dead, "first_position", t.firstDead.position, "first_reason", t.firstDead.reason)
	}
	if t.late > 0 {
		w.Log.Warn("events came after the marker for their time", "lease", w.p, "events", t.late, "segment", t.segment)
	}
	w.Observer.Committed(t.commit(w.p))
	w.traceRecords(nil)
	w.pool.put(t.batches) // their records are acknowledged
	w.memory.release(t.held)
	t.reset(t.segment)
}

// txn is what the open transaction holds.
type txn struct {
	segment source.Segment
	began   time.Time // zero: nothing to commit
	batches []*batch
	read    int
	emitted int

	filtered, late, dead int
	firstDead            deadLetter
	bytes                int
	held                 int64     // of the instance's memory
	last                 time.Time // of the records
	seen                 time.Time // of the events
	drained              bool
	published            time.Time

	reading, encoding Step
	segments, markers int // of a bundle
}

func (t *txn) start() {
	if t.began.IsZero() {
		t.began = time.Now()
	}
}

func (t *txn) add(b *batch) {
	t.start()
	t.batches = append(t.batches, b)
	t.read += len(b.events.Events)
	t.emitted += len(b.records) - len(b.dead)
	if t.dead == 0 && len(b.dead) > 0 {
		t.firstDead = b.dead[0]
		t.firstDead.raw = nil
	}
	t.dead += len(b.dead)
	t.filtered += b.filtered
	t.late += b.late
	t.bytes += b.bytes
	t.held += b.held
	if b.last.After(t.last) {
		t.last = b.last
	}
	if b.seen.After(t.seen) {
		t.seen = b.seen
	}
	t.reading.add(b.reading)
	t.encoding.add(b.encoding)
}

func (t *txn) commit(lease int32) Commit {
	return Commit{
		Lease: lease, Segment: t.segment, Read: t.read, Emitted: t.emitted, Filtered: t.filtered, Dead: t.dead, Late: t.late, Bytes: t.bytes, Last: t.seen,
		Drained: t.drained, Published: t.published, Took: time.Since(t.began),
	}
}

// count adds what is in the transaction.
func (t *txn) count(c *offsets.Cursor) {
	n := &c.Counts
	n.Read += int64(t.read)
	n.Emitted += int64(t.emitted)
	n.Filtered += int64(t.filtered)
	n.Late += int64(t.late)
	n.DeadLettered += int64(t.dead)
	if t.last.After(c.Event) {
		c.Event = t.last.UTC()
	}
}

// giveBack takes the memory of the last batch out of the transaction.
func (t *txn) giveBack(b *batch, m *budget) {
	m.release(b.held)
	t.held -= b.held
	b.held = 0
	t.batches = t.batches[:len(t.batches)-1]
}

// full bounds a transaction by its bytes and its memory; the number of records only where enough time has passed.
func (t *txn) full(records, bytes int, memory int64) bool {
	return t.bytes >= bytes || t.held >= memory || t.emitted >= records && time.Since(t.began) >= minTxnInterval
}

// reset begins the account of the next transaction. The array of batches is kept, but not the batches: a large transaction would
// hold its memory until there is a larger one.
func (t *txn) reset(seg source.Segment) {
	clear(t.batches)
	*t = txn{segment: seg, batches: t.batches[:0]}
}

// drop forgets what was not committed. The batches are left to the garbage collector: a closed client may still hold
// their records.
func (t *txn) drop() { *t = txn{} }

var _ offsets.Holder = (*Bridge)(nil)
