package bridge

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"blobfeed/envelope"
	"blobfeed/internal/mutation"
	"blobfeed/offsets"
	"blobfeed/resolved"
	"blobfeed/source"
)

// moveFrontier does what the keeper has to do in state s, if anything: write the first frontier, end a move, complete
// the current segment, or name the next one.
func (k *keeper) moveFrontier(s *offsets.State) (moved bool, err error) {
	if s.Frontier == nil {
		return k.firstFrontier(s)
	}
	if after, ok := s.Regressed(); ok { // without transactions only: a former owner has written behind newer records
		k.h.opts.Log.Warn("a paused instance has written old records behind newer ones; delivering again from there",
			"after_segment", after, "at", s.Frontier.At())
		return true, k.h.lease.Commit(k.h.held, nil, s.Repair(after))
	}
	f := *s.Frontier
	if err := k.h.shared.rivals.stillSole(k.h.work, k.h.retryIdle, &f); err != nil {
		return false, err
	}
	f.Leases = k.h.shared.leases // a frontier of an older version does not say
	f.Base = source.Segment{}
	switch {
	case f.Moving || f.Seek != nil && !f.Seek.Told:
		return k.endMove(f)
	case f.Owed: // a former owner died before it had written all of them
		return true, k.pay(&f, nothing)
	case f.Ended:
		return false, nil // Run stops when it sees this
	}
	if moved, stays, err := k.moveScan(f, s); moved || stays || err != nil {
		return moved, err
	}
	if f.Current == (source.Segment{}) {
		return k.advance(f, s)
	}
	m, gap, err := k.h.current(s)
	if errors.Is(err, errPast) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	if ends := m.Begin.Add(m.Interval); gap == nil && !(slices.Equal(m.Shards, f.Shards) && ends.Equal(f.Ends)) {
		f.Shards, f.Ends = m.Shards, ends // of an open segment, which may get shards
		return true, k.h.lease.Commit(k.h.held, nil, &f)
	}
	// I6: no marker before every shard is delivered.
	if !resolved.Complete(m, s) && !(mutation.NoBarrier && m.Finalized) {
		return false, nil
	}
	return true, k.complete(f, m, gap != nil, s)
}

// firstFrontier commits the frontier of a first start.
func (k *keeper) firstFrontier(s *offsets.State) (moved bool, _ error) {
	if s.Moving { // after a reset: what the leases still write is of the time before it
		if fenced, err := k.fenceOthers(); !fenced {
			return false, err
		}
	}
	opts := k.h.opts
	f := offsets.Frontier{
		Epoch: s.Epoch, Born: s.Epoch, Leases: k.h.shared.leases, Feed: opts.FeedID, Settings: opts.Frozen,
	}
	if err := k.recount(&f, nil); err != nil {
		return false, err
	}
	if s.Epoch == 0 { // else a reset: that records come again is what it is for
		k.warnOfRecords()
	}
	if opts.scansFirst() {
		if err := k.firstScan(&f); err != nil {
			return false, err
		}
	} else {
		f.Start, f.Completed = opts.Start.resolve(opts.Now())
	}
	return true, k.h.lease.Commit(k.h.held, nil, &f)
}

// warnOfRecords says that the topic has records, although the bridge begins: its state may be lost, or the topic may be
// another's. It is for operators, so a failure to look is no matter.
func (k *keeper) warnOfRecords() {
	opts := k.h.opts
	ctx, cancel := context.WithTimeout(k.h.work, usedTimeout)
	defer cancel()
	for _, topic := range opts.constant() {
		if used, err := k.h.shared.topics.Used(ctx, topic, opts.Client); err == nil && used && !opts.Shared {
			opts.Log.Warn("the topic has records, but this bridge has no progress yet", "topic", topic,
				"state", opts.offsetsTopic(), "hint", RecordsHint)
		}
	}
}

// RecordsHint is what run and check advise if a topic has records when there is no progress yet.
const RecordsHint = "what the bridge delivers comes behind them; if its state was lost, records come twice: for " +
	"consumers that cannot take that, delete the topic first, or choose another BRIDGE_TOPIC"

// usedTimeout bounds a look that nothing depends on.
const usedTimeout = 10 * time.Second

// advance does what there is to do between two segments: deliver a bundle, or name the next one. Nothing is in flight.
func (k *keeper) advance(f offsets.Frontier, s *offsets.State) (moved bool, err error) {
	next, ok, err := k.h.nextSegment(f.Completed)
	if err != nil || !ok {
		return false, err
	}
	if err := k.lostSince(&f); err != nil { // I8: also if only what is behind the end is left
		return false, err
	}
	if k.h.opts.end().Reached(next.Time()) {
		return true, k.endFeed(f)
	}
	// I5: nothing is in flight between two segments, so the counts may change here.
	if err := k.recount(&f, s); err != nil {
		return false, err
	}
	if maps.Equal(s.Frontier.Topics, f.Topics) { // which is what records are spread over
		if moved, err := k.bundle(f); moved || err != nil {
			return moved, err
		}
	}
	if err := k.nameSegment(&f, next); err != nil {
		return false, err
	}
	k.countSegments(&f, 0)
	return true, k.h.lease.Commit(k.h.held, nil, &f)
}

// nameSegment makes next the current segment. If retention has removed it meanwhile, there is none: the next step
// looks again.
func (k *keeper) nameSegment(f *offsets.Frontier, next source.Segment) error {
	m, err := k.h.manifest(k.h.work, next)
	var gap *GapError
	if errors.As(err, &gap) {
		return nil
	}
	if err != nil {
		return err
	}
	f.Current, f.Shards, f.Ends = next, m.Shards, m.Begin.Add(m.Interval)
	return nil
}

// complete commits, in one transaction, the frontier after the segment of m, and a marker to every partition (I6: no
// marker without the frontier that holds it, none to a part of the partitions). Gone says that m is only remembered.
func (k *keeper) complete(f offsets.Frontier, m source.Manifest, gone bool, s *offsets.State) error {
	if err := k.recount(&f, s); err != nil {
		return err
	}
	h, end := k.h, k.h.opts.end()
	next, more, err := h.nextSegment(f.Current)
	if err != nil {
		return err
	}
	beyond, ends := more && end.Reached(next.Time()), end.Reached(m.Begin.Add(m.Interval))
	// I8: retention may have removed this segment, and others behind it, while it was delivered. The listed one is the
	// next only if this segment was still there after the listing. Else the frontier names none, and lostSince looks.
	names := more && !ends && !gone && (beyond || !k.bundles(f.Current))
	if names {
		if names, err = h.isThere(f.Current, time.Now()); err != nil {
			return err
		}
	}
	lost := slices.ContainsFunc(s.Cursors, func(c *offsets.Cursor) bool {
		return c != nil && c.Gap && c.Finished(m.Segment)
	})
	switch {
	case lost && gone && more && !ends: // the gap ends at the next segment that is there
		recordGap(&f, m.Segment, next)
		names = true
	case lost:
		recordGap(&f, m.Segment, m.Segment)
	}
	if lost {
		k.repair(&f)
	}
	ends = ends || names && beyond
	var final envelope.Timestamp
	if ends {
		final = h.opts.End // nothing above it was written, and nothing more comes
	}
	began := time.Now()
	f.Current, f.Shards = source.Segment{}, nil
	done, err := k.promise(&f, m, final)
	if err == nil {
		k.countSegments(&f, 1)
		name := nothing
		if ends {
			k.end(&f)
		} else if names {
			name = func() error { return k.nameSegment(&f, next) }
		}
		err = k.commitPromise(nil, &f, name)
	}
	t := Transaction{Commit: Commit{Lease: h.p, Segment: m.Segment}, Segments: 1, Markers: done.Markers}
	h.traceEnd(t, began, err)
	if err != nil {
		return err
	}
	done.Last = !more
	h.opts.Observer.Completed(done)
	return nil
}

// endFeed commits the last frontier, and a marker for the end time to every partition.
func (k *keeper) endFeed(f offsets.Frontier) error {
	opts := k.h.opts
	if opts.marks() && opts.End.Compare(k.basis.promised) > 0 &&
		!resolved.Barred(opts.End, f.Scan, opts.ResolvedSlack) {
		if err := k.resolve(&f, opts.End); err != nil {
			return err
		}
	}
	k.end(&f)
	return k.commitPromise(nil, &f, nothing)
}

// end ends the delivery. Rows of a scan would be newer than the end.
func (k *keeper) end(f *offsets.Frontier) {
	f.Ended = true
	if f.Scan.Active() {
		k.h.opts.Log.Warn("the feed is delivered to BRIDGE_END_TIME; the scan is cancelled", "scan", f.Scan.ID)
		f.Scan = f.Scan.Cancel(k.h.opts.Now())
	}
}
