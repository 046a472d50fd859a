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

// moveFrontier does what the owner of lease 0 has to do in state s, if anything: write the first frontier, end a
// move, complete
// the current segment, or name the next one.
func (w *worker) moveFrontier(s *offsets.State) (moved bool, err error) {
	if s.Frontier == nil {
		return w.firstFrontier(s)
	}
	if after, ok := s.Regressed(); ok {
		return true, w.repair(s, after)
	}
	f := *s.Frontier
	if err := w.stillSole(&f); err != nil {
		return false, err
	}
	f.Leases = w.leases // a frontier of an older version does not say
	f.Base = source.Segment{}
	switch {
	case f.Moving || f.Seek != nil && !f.Seek.Told:
		return w.endMove(f)
	case f.Owed: // a former owner died before it had written all of them
		return true, w.pay(&f, nil)
	case f.Ended:
		return false, nil // Run stops when it sees this
	case f.Current == (source.Segment{}):
		return w.advance(f, s)
	}
	m, gap, err := w.current(s)
	if errors.Is(err, errPast) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	if ends := m.Begin.Add(m.Interval); gap == nil && !(slices.Equal(m.Shards, f.Shards) && ends.Equal(f.Ends)) {
		f.Shards, f.Ends = m.Shards, ends // of an open segment, which may get shards
		return true, w.lease.Commit(w.held, nil, &f)
	}
	if !resolved.Complete(m, s) && !(mutation.NoBarrier && m.Finalized) { // I6: no marker before every shard is delivered
		return false, nil
	}
	return true, w.complete(f, m, gap != nil, s)
}

// firstFrontier commits the frontier of a first start.
func (w *worker) firstFrontier(s *offsets.State) (moved bool, _ error) {
	if s.Moving { // after a reset: what the leases still write is of the time before it
		if fenced, err := w.fenceOthers(); !fenced {
			return false, err
		}
	}
	f := offsets.Frontier{Epoch: s.Epoch, Born: s.Epoch, Leases: w.leases, Feed: w.FeedID, Settings: w.Frozen}
	if err := w.recount(&f, nil); err != nil {
		return false, err
	}
	f.Start, f.Completed = w.Start.resolve(w.Now())
	return true, w.lease.Commit(w.held, nil, &f)
}

// advance does what there is to do between two segments: deliver a bundle, or name the next one. Nothing is in flight.
func (w *worker) advance(f offsets.Frontier, s *offsets.State) (moved bool, err error) {
	next, ok, err := w.nextSegment(f.Completed)
	if err != nil || !ok {
		return false, err
	}
	if w.beyond(next) {
		return true, w.end(f)
	}
	if err := w.lostSince(&f); err != nil {
		return false, err
	}
	// I5: nothing is in flight between two segments, so the counts may change here.
	if err := w.recount(&f, s); err != nil {
		return false, err
	}
	if maps.Equal(s.Frontier.Topics, f.Topics) { // which is what records are spread over
		if moved, err := w.bundle(f); moved || err != nil {
			return moved, err
		}
	}
	if err := w.name(&f, next); err != nil {
		return false, err
	}
	return true, w.lease.Commit(w.held, nil, &f)
}

// name makes next the current segment. If retention has removed it meanwhile, there is none: the next step looks again.
func (w *worker) name(f *offsets.Frontier, next source.Segment) error {
	m, err := w.manifest(w.work, next)
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

// remembered returns the manifest of the current segment as it was, in place of one that retention has removed: all its
// leases have to say that they are done, and so has each that began it.
func (w *worker) remembered(s *offsets.State) source.Manifest {
	f := s.Frontier
	m := source.Manifest{Segment: f.Current, Begin: f.Current.Time(), Finalized: true, Shards: slices.Clone(f.Shards)}
	if f.Ends.After(m.Begin) {
		m.Interval = f.Ends.Sub(m.Begin)
	}
	for p, c := range s.Cursors {
		began := c != nil && c.Segment == f.Current || f.Shards == nil // by an older version: any lease may have some
		if began && len(w.of(p, m)) == 0 {
			m.Shards = append(m.Shards, p)
		}
	}
	return m
}

// complete commits, in one transaction, the frontier after the segment of m, and a marker to every partition (I6: no
// marker without the frontier that holds it, none to a part of the partitions). Gone says that m is only remembered.
func (w *worker) complete(f offsets.Frontier, m source.Manifest, gone bool, s *offsets.State) error {
	if err := w.recount(&f, s); err != nil {
		return err
	}
	next, more, err := w.nextSegment(f.Current)
	if err != nil {
		return err
	}
	ends := more && w.beyond(next) || w.reaches(m.Begin.Add(m.Interval))
	// I8: retention may have removed this segment, and others behind it, while it was delivered. Only where it was still
	// there
	// after the next one was listed, is that one the next. Else the frontier names none, and lostSince looks into it.
	names := more && !ends && !gone && !w.bundles(f.Current)
	if names {
		if names, err = w.isThere(f.Current, time.Now()); err != nil {
			return err
		}
	}
	lost := slices.ContainsFunc(s.Cursors, func(c *offsets.Cursor) bool {
		return c != nil && c.Gap && c.Finished(m.Segment)
	})
	switch {
	case lost && gone && more && !ends: // G: with all that is missing up to the next one
		recordGap(&f, m.Segment, next)
		names = true
	case lost:
		recordGap(&f, m.Segment, m.Segment)
	}
	var final envelope.Timestamp
	if ends {
		final = w.End // nothing above it was written, and nothing more comes
	}
	began := w.begin()
	f.Current, f.Shards = source.Segment{}, nil
	done, err := w.promise(&f, m, final)
	if err == nil {
		err = w.commitPromise(nil, &f, func() error {
			f.Ended = ends
			if names {
				return w.name(&f, next)
			}
			return nil
		})
	}
	w.trace(Transaction{Commit: Commit{Lease: w.p, Segment: m.Segment}, Segments: 1, Markers: done.Markers}, began, err)
	if err != nil {
		return err
	}
	done.Last = !more
	w.Observer.Completed(done)
	return nil
}

// promise puts into f that the segment of m is complete, and writes the markers that say so, which commitPromise
// commits. Final,
// if not zero, is what the last of all says.
func (w *worker) promise(f *offsets.Frontier, m source.Manifest, final envelope.Timestamp) (Completion, error) {
	f.Completed, f.Ends, f.Seek = m.Segment, m.Begin.Add(m.Interval), nil
	done := Completion{Segment: m.Segment}
	if w.Markers == envelope.MarkersOff {
		return done, nil
	}
	done.Resolved = resolved.After(m, w.ResolvedSlack, w.promised)
	if final.Compare(w.promised) > 0 {
		done.Resolved = final
	}
	f.Resolved = done.Resolved.String()
	if !w.Transactional {
		done.Markers = markersOf(f)
		return done, nil
	}
	var err error
	done.Markers, err = w.mark(f, done.Resolved)
	return done, err
}

// markersOf returns how many markers a promise takes.
func markersOf(f *offsets.Frontier) (n int) {
	for _, partitions := range f.Topics {
		n += int(partitions)
	}
	return n
}

// commitPromise commits f, and the cursor if there is one, with the markers of its promise. Name adds to f what may
// only be seen
// behind the markers.
//
// Without transactions the order makes the difference (I6). The records are flushed and checked before the frontier
// is written,
// so nothing comes below a marker for the first time. The frontier is written before its markers, so a crash between
// them leaves
// a debt that the next owner pays, and no marker that nobody remembers: markers never fall. And the next segment is
// named behind
// the markers, so a key moves to another partition only across one (I5).
func (w *worker) commitPromise(c *offsets.Cursor, f *offsets.Frontier, name func() error) error {
	if w.Transactional {
		if err := name(); err != nil {
			return err
		}
		return w.lease.Commit(w.held, c, f)
	}
	f.Base, f.Owed = w.frontier.Completed, w.Markers != envelope.MarkersOff
	if c != nil {
		c.Resolved = f.Resolved
	}
	if err := w.lease.Commit(w.held, c, f); err != nil {
		return err
	}
	s, _, err := w.view.Get() // which has read that frontier
	if err == nil {
		err = w.over(s)
	}
	if err != nil {
		return err
	}
	return w.pay(f, name)
}

// pay writes the markers that f owes, and then f without the debt.
func (w *worker) pay(f *offsets.Frontier, name func() error) error {
	if f.Owed {
		ts, err := parseTime(f.Resolved)
		if err != nil {
			return err
		}
		if _, err := w.mark(f, ts); err != nil {
			return err
		}
		f.Owed = false
	}
	if name != nil {
		if err := name(); err != nil {
			return err
		}
	}
	return w.lease.Commit(w.held, nil, f) // flushes the markers first
}

// beyond reports whether a segment holds nothing up to the end.
func (w *worker) beyond(seg source.Segment) bool { return w.reaches(seg.Time()) }

// reaches reports whether END_TIME is set and the segments up to a moment hold every event up to it: events lie less
// than
// the slack outside their segment, which is what their markers promise as well (I6). So an end that equals the last
// marker
// is reached. An idle account publishes no later segment to wait for.
func (w *worker) reaches(moment time.Time) bool {
	return w.End != (envelope.Timestamp{}) && moment.Add(-segmentSlack).UnixNano() >= w.End.Wall
}

// end commits the last frontier, and a marker for the end time to every partition.
func (w *worker) end(f offsets.Frontier) error {
	if w.Markers != envelope.MarkersOff && w.End.Compare(w.promised) > 0 {
		f.Resolved = w.End.String()
		if w.Transactional {
			if _, err := w.mark(&f, w.End); err != nil {
				return err
			}
		}
	}
	return w.commitPromise(nil, &f, func() error { f.Ended = true; return nil })
}

// next returns the first segment after seg that may be read.
func (b *Bridge) next(ctx context.Context, seg source.Segment) (source.Segment, bool, error) {
	for next, err := range b.Feed.Segments(ctx, seg) {
		return next, err == nil, err
	}
	return source.Segment{}, false, nil
}

func (w *worker) nextSegment(seg source.Segment) (next source.Segment, ok bool, err error) {
	err = w.ask(w.work, func(ctx context.Context) error {
		next, ok, err = w.next(ctx, seg)
		return err
	})
	return next, ok, err
}

// late reports whether a record comes at or below a marker that was written before it.
func (w *worker) late(ts envelope.Timestamp) bool { return ts.Compare(w.promised) <= 0 }
