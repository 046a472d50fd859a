package bridge

import (
	"context"
	"fmt"
	"math"
	"time"

	"blobfeed/envelope"
	"blobfeed/offsets"
	"blobfeed/source"
)

// Small finalized segments are delivered in bundles. The barrier takes two transactions of each segment, which is nothing for
// an hour's events and nearly all of the time for twenty of them. So the owner of lease 0 delivers a run of such segments by
// itself: their records, the markers after each, and the frontier behind the last, in one transaction.
//
// Meanwhile the frontier names no current segment, so no other lease writes (I4): what it wrote before is of a segment that
// was complete, by its committed cursor. A crash leaves nothing behind; the next owner begins at the frontier again. The
// cursors of the leases stay where they are: they belong to segments that are over.

// reading returns what is read ahead of the segment after one.
func (w *worker) reading(after source.Segment) *ahead {
	if w.ahead != nil && w.ahead.after != after {
		w.ahead.cancel()
		w.ahead = nil
	}
	if w.ahead == nil {
		w.ahead = w.lookAhead(after)
	}
	return w.ahead
}

// stopReading drops what was read ahead.
func (w *worker) stopReading() {
	if w.ahead != nil {
		w.ahead.cancel()
		w.ahead = nil
	}
}

// bundles reports whether a bundle begins after the segment.
func (w *worker) bundles(after source.Segment) bool {
	if w.BundleBytes == 0 {
		return false
	}
	s := w.reading(after).peek(w.work.Done())
	return s != nil && !w.endsWith(s.m)
}

// bundle delivers the small segments after f.Completed, as many as fit into a transaction. Moved is false if the next one is
// not for a bundle.
func (w *worker) bundle(f offsets.Frontier) (moved bool, err error) {
	if !w.bundles(f.Completed) {
		return false, nil
	}
	was := f
	a := w.reading(f.Completed)
	due, cancel := context.WithTimeout(w.work, w.CommitInterval)
	defer cancel()
	w.txn.reset(f.Completed)
	var size int64
	var done []Completion
	var first source.Segment
	for {
		s := a.peek(due.Done())
		if s == nil || w.endsWith(s.m) || size > 0 && size+s.size > w.BundleBytes ||
			w.txn.full(w.TxnRecords, min(w.TxnBytes, w.batchBytes()), math.MaxInt64) {
			break
		}
		if w.encodeAll(s) != nil {
			break // the leases meet it again, and say so
		}
		a.take()
		defer a.memory.Release(s.size)
		if size == 0 {
			first = s.m.Segment
		}
		size += max(s.size, 1)
		w.txn.start()
		for _, b := range s.batches {
			w.txn.add(b)
			if err := w.produce(b); err != nil {
				return false, err
			}
			f.Adopt(b.pins) // I6: also a topic that is new gets the marker
		}
		c, err := w.promise(&f, s.m, envelope.Timestamp{})
		if err != nil {
			return false, err
		}
		w.txn.segment, w.promised = f.Completed, c.Resolved
		w.txn.segments++
		w.txn.markers += c.Markers
		done = append(done, c)
	}
	if len(done) == 0 {
		return false, nil
	}
	if err := w.followed(was, first); err != nil {
		return false, err
	}
	w.txn.count(w.cursor)
	w.cursor.Ahead = 0
	if err := w.commitPromise(w.cursor, &f, func() error { return nil }); err != nil {
		return false, err
	}
	w.committed()
	_, more, err := w.nextSegment(f.Completed)
	if err != nil {
		return true, err
	}
	done[len(done)-1].Last = !more
	for _, c := range done {
		w.Observer.Completed(c)
	}
	return true, nil
}

// followed reports whether retention has removed nothing around a bundle that begins with first, behind f (I8). It
// begins with
// what is oldest, so while first is there, no listing behind it missed anything. And while the completed segment is
// there, nothing
// between the two was removed before the reading ahead listed what comes next. Otherwise the records are given up,
// and the next
// hold finds what is lost.
func (w *worker) followed(f offsets.Frontier, first source.Segment) error {
	if _, err := w.Feed.Manifest(w.work, first); err != nil {
		return fmt.Errorf("looking whether retention removed what was read ahead: %w", err)
	}
	before := f.Gap
	if err := w.lostSince(&f); err != nil {
		return err
	}
	if f.Gap != before {
		return errMoved
	}
	return nil
}

// encodeAll makes the records of a segment, before the first of them is written: a segment is in a bundle whole, or not.
func (w *worker) encodeAll(s *small) error {
	for _, b := range s.batches {
		if err := b.encode(w.work, w, s.m); err != nil {
			return err
		}
		if len(b.dead) > 0 {
			return errNotSmall
		}
	}
	return nil
}

// endsWith reports whether the segment may be the last before END_TIME.
func (w *worker) endsWith(m source.Manifest) bool {
	return w.End != (envelope.Timestamp{}) && m.Begin.Add(m.Interval+segmentSlack+time.Second).UnixNano() > w.End.Wall
}
