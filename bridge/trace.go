package bridge

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"blobfeed/offsets"
)

// Tracer hears when the steps of each transaction were. It is called from many goroutines and must not block. Without one
// nothing of this is measured.
type Tracer interface {
	Ended(Transaction)
}

// Transaction is one that ended: a lease's, of records, or that of markers alone, which lease 0 writes behind a segment.
type Transaction struct {
	Commit
	// Err is nil if it is committed. Else it was given up, and the next acquisition of the lease finds out what became of it.
	Err      error
	Cursor   string // how far the lease is, shard=chunk/offset
	Blocks   int    // of chunks
	Segments int    // that it completed
	Markers  int    // which it holds
	// Reading and encoding are done ahead, by all shards side by side. A step that there was not is zero.
	Reading, Encoding, Publishing, Committing Step
}

// Step is a part of the work, from its first begin to its last end: a transaction can have hundreds of blocks.
type Step struct {
	Began, Ended time.Time
	Busy         time.Duration // spent in it; more than the time between where shards are side by side
}

func (s *Step) add(o Step) {
	if o.Began.IsZero() {
		return
	}
	if s.Began.IsZero() || o.Began.Before(s.Began) {
		s.Began = o.Began
	}
	if o.Ended.After(s.Ended) {
		s.Ended = o.Ended
	}
	s.Busy += o.Busy
}

// begin returns the begin of a step, zero where nobody wants to know.
func (b *Bridge) begin() time.Time {
	if b.Tracer == nil {
		return time.Time{}
	}
	return time.Now()
}

func since(began time.Time) Step {
	if began.IsZero() {
		return Step{}
	}
	return between(began, time.Now())
}

func between(began, ended time.Time) Step {
	return Step{Began: began, Ended: ended, Busy: ended.Sub(began)}
}

// trace tells of a transaction whose first record was written when published began, and that ends now.
func (w *worker) trace(t Transaction, published time.Time, err error) {
	if w.Tracer == nil {
		return
	}
	now := time.Now()
	t.Err, t.Publishing = err, between(published, now)
	if acked := w.lease.Flushed(); acked.After(published) {
		t.Publishing, t.Committing = between(published, acked), between(acked, now)
	}
	w.Tracer.Ended(t)
}

// traceRecords is trace for the transaction of records that is open, if one is.
func (w *worker) traceRecords(err error) {
	if w.Tracer == nil || w.txn.began.IsZero() {
		return
	}
	w.trace(Transaction{
		Commit: w.txn.commit(w.p), Cursor: place(w.cursor), Blocks: len(w.txn.batches), Segments: w.txn.segments, Markers: w.txn.markers,
		Reading: w.txn.reading, Encoding: w.txn.encoding,
	}, w.txn.began, err)
}

func place(c *offsets.Cursor) string {
	var s strings.Builder
	for i, shard := range slices.Sorted(maps.Keys(c.Shards)) {
		if i > 0 {
			s.WriteByte(' ')
		}
		fmt.Fprintf(&s, "%s=%s", shard, c.Shards[shard])
	}
	return s.String()
}
