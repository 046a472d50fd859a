package bridge

import (
	"context"
	"fmt"

	"blobfeed/bridge/pipeline"
	"blobfeed/envelope"
	"blobfeed/offsets"
	"blobfeed/source"
)

// Small finalized segments are delivered in bundles. The barrier takes two transactions of each segment, which is
// nothing for an hour's events and nearly all of the time for twenty of them. So the owner of lease 0 delivers a run
// of such segments by itself: their records, the markers after each, and the frontier behind the last, in one
// transaction.
//
// Meanwhile the frontier names no current segment, so no other lease writes (I4). What the other leases wrote before
// belongs to complete segments, as their committed cursors say. A crash leaves nothing behind: the next owner starts at
// the frontier again. The cursors of the leases stay where they are, in segments that are over.

// ahead returns what is read ahead of the segment after one.
func (k *keeper) ahead(after source.Segment) *pipeline.Lookahead {
	if k.lookahead != nil && k.lookahead.After != after {
		k.stopReading()
	}
	if k.lookahead == nil {
		k.lookahead = k.h.shared.pipe.Lookahead(k.h.work, after)
	}
	return k.lookahead
}

// stopReading drops what was read ahead.
func (k *keeper) stopReading() {
	if k.lookahead != nil {
		k.lookahead.Stop()
		k.lookahead = nil
	}
}

// bundles reports whether a bundle starts after the segment.
func (k *keeper) bundles(after source.Segment) bool {
	if k.h.opts.BundleBytes == 0 {
		return false
	}
	s := k.ahead(after).Peek(k.h.work.Done())
	return s != nil && !k.h.opts.end().Within(s.Manifest)
}

// bundle delivers the small segments after f.Completed, as many as fit into a transaction. Moved is false if the next
// one is not for a bundle.
func (k *keeper) bundle(f offsets.Frontier) (moved bool, err error) {
	if !k.bundles(f.Completed) {
		return false, nil
	}
	h, opts, txn := k.h, k.h.opts, &k.w.txn
	was := f
	ahead := k.ahead(f.Completed)
	due, cancel := context.WithTimeout(h.work, k.w.interval(opts.CommitInterval))
	defer cancel()
	txn.reset(f.Completed)
	// I9: what is read ahead has a bound of its own, and its records have this one: they may be larger than events.
	most := max(h.shared.pipe.BlockBytes(), int(opts.BundleBytes/2*3))
	var size int64
	var done []Completion
	var first source.Segment
	for {
		s := ahead.Peek(due.Done())
		if s == nil || opts.end().Within(s.Manifest) || size > 0 && size+s.Size > opts.BundleBytes ||
			txn.full(opts.TxnRecords, min(opts.TxnBytes, most), minTxnInterval) {
			break
		}
		if h.shared.pipe.EncodeWhole(h.work, k.basis.describe(s.Manifest, nil), s) != nil {
			break // the leases meet it again, and report it
		}
		ahead.Take()
		defer ahead.Release(s)
		if size == 0 {
			first = s.Manifest.Segment
		}
		size += max(s.Size, 1)
		txn.start()
		for _, b := range s.Blocks {
			sent, err := k.w.produce(b)
			if err != nil {
				return false, err
			}
			f.Adopt(pinsOf(b.New)) // I6: also a topic that is new gets the marker
			sent.Done()
		}
		c, err := k.promise(&f, s.Manifest, envelope.Timestamp{})
		if err != nil {
			return false, err
		}
		txn.segment = f.Completed
		if c.Resolved != (envelope.Timestamp{}) {
			k.basis.promised = c.Resolved
		}
		txn.segments++
		txn.markers += c.Markers
		done = append(done, c)
	}
	if len(done) == 0 {
		return false, nil
	}
	if err := k.followed(was, first); err != nil {
		return false, err
	}
	return true, k.commitBundle(&f, done)
}

// commitBundle commits the records of the segments that are done, with f behind them.
func (k *keeper) commitBundle(f *offsets.Frontier, done []Completion) error {
	k.w.txn.countInto(k.h.cursor)
	k.h.cursor.Ahead, k.h.cursor.Listed, k.h.cursor.Failing = 0, 0, false
	k.countSegments(f, len(done))
	if err := k.commitPromise(k.h.cursor, f, nothing); err != nil {
		return err
	}
	k.w.committed()
	_, more, err := k.h.nextSegment(f.Completed)
	if err != nil {
		return err
	}
	done[len(done)-1].Last = !more
	for _, c := range done {
		k.h.opts.Observer.Completed(c)
	}
	return nil
}

// followed returns an error if retention may have removed segments around a bundle that starts with first, behind f
// (I8). Retention removes the oldest segments first. So while first exists, no listing after it missed a segment. While
// the completed segment exists, none between the two was removed before the reading ahead listed what comes next.
// After an error the records are given up, and the next hold finds what is lost.
func (k *keeper) followed(f offsets.Frontier, first source.Segment) error {
	if _, err := k.h.opts.Feed.Manifest(k.h.work, first); err != nil {
		return fmt.Errorf("looking whether retention removed what was read ahead: %w", err)
	}
	before := f.Gap
	if err := k.lostSince(&f); err != nil {
		return err
	}
	if f.Gap != before {
		return errMoved
	}
	return nil
}
