package bridge

import (
	"cmp"
	"context"
	"time"

	"blobfeed/bridge/pipeline"
	"blobfeed/internal/catalog"
	"blobfeed/offsets"
	"blobfeed/source"
)

// writer puts the blocks of a tenure, and the cursor after them, into transactions. Its methods in change.go write what
// the coordinator has decided. It belongs to the worker's goroutine.
type writer struct {
	t       *tenure
	tx      *offsets.Tx      // nil: none is open
	txn     txn              // what is in it
	backlog pipeline.Backlog // guards itself: shards set it
	ends    [2]time.Duration // what the brokers took to end the last two without a frontier
}

// addBlock puts a block into the open transaction and moves the cursor over it. Both or neither: the cursor that is
// committed covers exactly the records of its transaction (I1).
func (w *writer) addBlock(b *pipeline.Block) error {
	sent, err := w.produce(b)
	if err != nil {
		return err
	}
	defer sent.Done() // I9: nothing of it waits for the commit
	if err := w.flush(b.Memory); err != nil {
		return err
	}
	switch {
	case b.Swept:
	case b.Step != nil:
		if err := w.advanceScan(b); err != nil {
			return err
		}
	default:
		w.t.cursor.Advance(w.txn.segment, b.Shard, b.Next())
		w.t.cursor.Gap = w.t.cursor.Gap || b.Gap
		w.backlog.Set(b.Shard, b.Left)
	}
	w.t.cursor.Pin(catalog.Pins(b.New))
	return w.t.lease.Err()
}

// advanceScan moves the cursor over a block of rows (I1).
func (w *writer) advanceScan(b *pipeline.Block) error {
	l := w.t.cursor.Scan
	if err := l.Progress.Apply(b.Step); err != nil {
		return err
	}
	l.Rows += int64(b.Counts.Rows)
	return nil
}

// begin begins a transaction. It fails if one is open: what the coordinator decides is never added to half a delivery.
func (w *writer) begin() (tx *offsets.Tx, err error) {
	if tx, err = w.t.lease.Begin(); err == nil {
		w.tx, w.txn.began, w.txn.recent = tx, time.Now(), new(pipeline.Recent)
	}
	return tx, err
}

// open returns the open transaction, a new one if there is none.
func (w *writer) open() (*offsets.Tx, error) {
	if w.tx != nil {
		return w.tx, nil
	}
	return w.begin()
}

// end ends the open transaction with its documents, and reports it.
func (w *writer) end(c *offsets.Cursor, f *offsets.Frontier) error {
	tx := w.tx
	w.tx = nil
	if err := tx.Commit(w.t.held, c, f); err != nil {
		w.trace(err)
		return err
	}
	if f == nil {
		w.ends = [2]time.Duration{time.Since(w.t.lease.Flushed()), w.ends[0]}
	}
	w.committed(c != nil)
	return nil
}

// produce puts the records of a block into the open transaction. The caller calls Done when it has used the block.
func (w *writer) produce(b *pipeline.Block) (*pipeline.Sent, error) {
	tx, err := w.open()
	sent := w.t.instance.pipe.Send(b, w.txn.recent)
	if err == nil {
		w.txn.include(b)
		if len(b.Records) > 0 {
			w.txn.sent = append(w.txn.sent, sent)
		}
		others, last := b.Split()
		if err = tx.Add(w.t.held, others, sent.Acked); err == nil {
			err = tx.Add(w.t.held, last, sent.Keep)
		}
	}
	if err != nil {
		sent.Abandon() // I9
		return nil, err
	}
	return sent, nil
}

// flush sends what the client has, if that takes too much memory (I9). With transactions, it sends on its own. A bundle
// has the memory for all of its blocks.
func (w *writer) flush(held int64) error {
	if w.t.opts.Kafka.Transactional {
		return nil
	}
	if w.txn.unsent += held; w.txn.unsent < w.t.instance.pipe.Unsent() {
		return nil
	}
	w.txn.unsent = 0
	return w.tx.Flush(w.t.held)
}

// take puts blocks into transactions, and commits each that is full or as old as the commit interval. When there are no
// more blocks, the last transaction may be open.
func (w *writer) take(blocks <-chan *pipeline.Block) error {
	t, opts, txn := w.t, w.t.opts, &w.txn
	due := time.NewTimer(0)
	defer due.Stop()
	<-due.C
	for {
		select {
		case b, ok := <-blocks:
			if !ok {
				return nil
			}
			if w.tx == nil {
				due.Reset(w.interval(opts.Pace.CommitInterval))
			}
			if err := w.addBlock(b); err != nil {
				return err
			}
			if txn.full(opts.Pace.TxnRecords, opts.Pace.TxnBytes, w.leastOpen()) {
				due.Stop()
				if err := w.commit(); err != nil {
					return err
				}
			}
		case <-due.C:
			if err := w.commit(); err != nil {
				return err
			}
		case <-t.findings.failed:
			if w.tx == nil { // else the commit that is due takes it with it
				if err := t.commitFailing(true); err != nil {
					return err
				}
			}
		case <-t.work.Done():
			// The other blocks are dropped, with their readers.
			return cmp.Or(w.commit(), context.Cause(t.work))
		}
	}
}

// commit ends the open transaction, if one is, with the cursor.
func (w *writer) commit() error {
	if w.tx == nil {
		return nil
	}
	t := w.t
	w.txn.countInto(t.cursor)
	t.findings.putInto(t.cursor)
	t.cursor.Failing = t.findings.recent(t.opts.Now())
	t.cursor.Ahead, t.cursor.Listed = w.backlog.Total()
	if !t.opts.Kafka.Transactional {
		t.cursor.Resolved = w.t.epoch.frontier.Resolved
	}
	return w.end(t.cursor, nil)
}

// interval returns how long a transaction stays open. The brokers write a marker to each partition of a transaction, so
// with 550 topics of 12 partitions they need seconds to end one. A transaction stays open at least that long, so that
// at most half of the time goes into ending transactions. The minimum of two ends ignores a single slow one, as after
// an outage of a broker.
func (w *writer) interval(least time.Duration) time.Duration {
	return max(least, min(w.ends[0], w.ends[1], w.t.opts.Kafka.TxnTimeout/4))
}

// leastOpen returns how long a transaction stays open at least, even if it has its number of records. Ends then take at
// most a quarter of the time. With 256 partitions, they took half of a catch-up.
func (w *writer) leastOpen() time.Duration { return max(minTxnInterval, 3*w.interval(0)) }

// committed reports a transaction, and starts the account of the next. One with a cursor has the work of the lease.
func (w *writer) committed(work bool) {
	txn, t := &w.txn, w.t
	if txn.counts.Dead > 0 {
		t.opts.Log.Warn("sent to the dead-letter topic", "lease", t.p, "topic", t.opts.Topics.DeadLetter,
			"letters", txn.counts.Dead, "first_position", txn.firstDead.position, "first_reason", txn.firstDead.reason)
	}
	if txn.counts.Late > 0 {
		t.opts.Log.Warn("events came after the marker for their time",
			"lease", t.p, "events", txn.counts.Late, "segment", txn.segment)
	}
	if work {
		done := txn.summary(t.p)
		done.Recent = txn.recent
		t.opts.Observer.Committed(done)
	}
	w.trace(nil)
	txn.reset(txn.segment)
}

// abandon drops the open transaction, because the tenure ends.
func (w *writer) abandon() {
	for _, s := range w.txn.sent {
		s.Abandon()
	}
	w.tx, w.txn = nil, txn{}
}

// trace reports the transaction that ends now, if it has more than documents.
func (w *writer) trace(err error) {
	t, txn := w.t, &w.txn
	if !t.opts.Observer.traced() || txn.began.IsZero() || txn.blocks+txn.segments+txn.markers == 0 {
		return
	}
	done := Transaction{
		Commit: txn.summary(t.p), Cursor: t.cursor.Places(), Blocks: txn.blocks, Err: err,
		Segments: txn.segments, Markers: txn.markers, Reading: txn.reading, Encoding: txn.encoding,
	}
	began, now := txn.began, time.Now()
	done.Publishing = pipeline.Between(began, now)
	if acked := t.lease.Flushed(); acked.After(began) {
		done.Publishing, done.Committing = pipeline.Between(began, acked), pipeline.Between(acked, now)
	}
	t.opts.Observer.Ended(done)
}

// minTxnInterval keeps transactions from following each other so fast that the broker's wait for the markers of the
// one before (20 ms a broker) is all that happens.
const minTxnInterval = 100 * time.Millisecond

// txn is what the open transaction of a lease holds.
type txn struct {
	segment source.Segment
	began   time.Time // when it was opened, which its first record follows
	blocks  int
	sent    []*pipeline.Sent // those with records
	unsent  int64            // memory of the blocks since the last flush, without transactions
	counts  pipeline.Counts
	recent  *pipeline.Recent // only a commit makes it known

	firstDead struct{ position, reason string }
	drained   bool
	published time.Time

	reading, encoding pipeline.Span
	segments, markers int // of a bundle
}

func (t *txn) include(b *pipeline.Block) {
	t.blocks++
	if t.counts.Dead == 0 {
		t.firstDead.position, t.firstDead.reason = b.FirstDead()
	}
	t.counts.Add(b.Counts)
	t.reading.Add(b.Reading)
	t.encoding.Add(b.Encoding)
}

func (t *txn) summary(lease int32) Commit {
	c := &t.counts
	return Commit{
		Lease: lease, Segment: t.segment, Read: c.Read, Emitted: c.Emitted, Filtered: c.Filtered, Unknown: c.Unknown,
		Dead: c.Dead, Late: c.Late, Rows: c.Rows, Bytes: c.Bytes, Seen: c.Seen, Drained: t.drained,
		Published: t.published, Took: time.Since(t.began),
	}
}

// countInto adds what is in the transaction to a cursor.
func (t *txn) countInto(c *offsets.Cursor) {
	c.Counts.Add(offsets.Counts{
		Read: int64(t.counts.Read), Emitted: int64(t.counts.Emitted - t.counts.Rows),
		Filtered: int64(t.counts.Filtered), Unknown: int64(t.counts.Unknown),
		Late: int64(t.counts.Late), DeadLettered: int64(t.counts.Dead),
		Scanned: int64(t.counts.Rows),
	})
	if t.counts.Last.After(c.Event) {
		c.Event = t.counts.Last.UTC()
	}
}

// full bounds a transaction by its bytes, and by the number of its records where enough time has passed.
func (t *txn) full(records, bytes int, interval time.Duration) bool {
	return t.counts.Bytes >= bytes ||
		t.counts.Emitted >= records && time.Since(t.began) >= interval
}

// reset starts the account of the next transaction. The array is kept, but not what is in it: a large transaction would
// hold it until there is a larger one.
func (t *txn) reset(seg source.Segment) {
	clear(t.sent)
	*t = txn{segment: seg, sent: t.sent[:0]}
}
