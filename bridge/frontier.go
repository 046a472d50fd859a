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

// moveFrontier does what the owner of lease 0 has to do in state s, if anything: write the first frontier, complete the
// current segment, or name the next one.
func (w *worker) moveFrontier(s *offsets.State) (moved bool, err error) {
	if s.Frontier == nil {
		f := offsets.Frontier{Epoch: s.Epoch, Feed: w.FeedID, Settings: w.Frozen}
		if err := w.recount(&f, s); err != nil {
			return false, err
		}
		f.Start, f.Completed = w.Start.resolve(w.Now())
		return true, w.lease.Commit(w.hard, nil, &f)
	}
	f := *s.Frontier
	if f.Ended {
		return false, nil // Run stops when it sees this
	}
	if err := w.stillSole(&f); err != nil {
		return false, err
	}
	if f.Seek != nil && !f.Seek.Told {
		return true, w.tellSeek(f, s)
	}
	if f.Current == (source.Segment{}) {
		next, ok, err := w.nextSegment(f.Completed)
		if err != nil || !ok {
			return false, err
		}
		if w.beyond(next) {
			return true, w.end(f)
		}
		if err := w.lostSince(&f); err != nil {
			return w.skipGap(f, s, err)
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
		f.Current = next
		return true, w.lease.Commit(w.hard, nil, &f)
	}
	m, err := w.manifest(f.Current)
	if err != nil {
		return w.skipGap(f, s, err)
	}
	if !resolved.Complete(m, s) && !(mutation.NoBarrier && m.Finalized) { // I6: no marker before every shard is delivered
		return false, nil
	}
	return true, w.complete(f, m, s)
}

// complete commits, in one transaction, the frontier after the segment of m, and a marker to every partition (I6: no
// marker without the frontier that holds it, none to a part of the partitions).
func (w *worker) complete(f offsets.Frontier, m source.Manifest, s *offsets.State) error {
	if err := w.recount(&f, s); err != nil {
		return err
	}
	next, more, err := w.nextSegment(f.Current)
	if err != nil {
		return err
	}
	ends := more && w.beyond(next) || w.reaches(m.Begin.Add(m.Interval))
	if ends || more && w.bundles(f.Current) {
		next = source.Segment{}
	} else if more {
		// I8: retention may have removed this segment, and others behind it, while it was delivered. Only where it was still
		// there after the next one was listed, is that one the next. Else the frontier names none, and lostSince looks into it.
		if gone, err := w.goneSince(f.Current, time.Now()); err != nil {
			return err
		} else if gone {
			next = source.Segment{}
		}
	}
	f.Current, f.Ended = next, ends
	if slices.ContainsFunc(s.Cursors, func(c *offsets.Cursor) bool { return c != nil && c.Gap && c.Finished(m.Segment) }) {
		if f.Gap == nil {
			f.Gap = &offsets.Gap{From: m.Segment}
		}
		f.Gap.To = m.Segment
		f.Gaps++
	}
	var final envelope.Timestamp
	if ends {
		final = w.End // nothing above it was written, and nothing more comes
	}
	began := w.begin()
	done, err := w.promise(&f, m, final)
	if err == nil {
		err = w.lease.Commit(w.hard, nil, &f)
	}
	w.trace(Transaction{Commit: Commit{Lease: w.p, Segment: m.Segment}, Segments: 1, Markers: done.Markers}, began, err)
	if err != nil {
		return err
	}
	done.Last = !more
	w.Observer.Completed(done)
	return nil
}

// promise writes the markers after the segment of m, and what they say into the frontier that is to be committed with them.
// Final, if not zero, is what the last of all says.
func (w *worker) promise(f *offsets.Frontier, m source.Manifest, final envelope.Timestamp) (Completion, error) {
	f.Completed, f.Seek = m.Segment, nil
	done := Completion{Segment: m.Segment}
	if w.Markers == envelope.MarkersOff {
		return done, nil
	}
	done.Resolved = resolved.After(m, w.ResolvedSlack, w.promised)
	if final.Compare(w.promised) > 0 {
		done.Resolved = final
	}
	f.Resolved = done.Resolved.String()
	markers, err := w.mark(f, done.Resolved)
	done.Markers = markers
	return done, err
}

// beyond reports whether a segment holds nothing up to the end.
func (w *worker) beyond(seg source.Segment) bool { return w.reaches(seg.Time()) }

// reaches reports whether END_TIME is set and the segments up to a moment hold every event up to it: events lie less than
// the slack outside their segment, which is what their markers promise as well (I6). So an end that equals the last marker
// is reached. An idle account publishes no later segment to wait for.
func (w *worker) reaches(moment time.Time) bool {
	return w.End != (envelope.Timestamp{}) && moment.Add(-segmentSlack).UnixNano() >= w.End.Wall
}

// end commits the last frontier, and a marker for the end time to every partition.
func (w *worker) end(f offsets.Frontier) error {
	f.Ended = true
	if w.Markers != envelope.MarkersOff && w.End.Compare(w.promised) > 0 {
		f.Resolved = w.End.String()
		if _, err := w.mark(&f, w.End); err != nil {
			return err
		}
	}
	return w.lease.Commit(w.hard, nil, &f)
}

// next returns the first segment after seg that may be read.
func (b *Bridge) next(ctx context.Context, seg source.Segment) (source.Segment, bool, error) {
	for next, err := range b.Feed.Segments(ctx, seg) {
		return next, err == nil, err
	}
	return source.Segment{}, false, nil
}

func (w *worker) nextSegment(seg source.Segment) (next source.Segment, ok bool, err error) {
	err = w.ask(func(ctx context.Context) error {
		next, ok, err = w.next(ctx, seg)
		return err
	})
	return next, ok, err
}

// awaitAll returns when everything that the feed holds is delivered: for --once. The feed must say twice that there is
// nothing more: a watermark that cannot be found for a moment looks like that, too, and nobody would look again.
func (b *Bridge) awaitAll(ctx context.Context) error {
	for sure := false; ; {
		s, changed, err := b.view.Get()
		if err != nil {
			return err
		}
		var all bool
		if err := b.retry(ctx, -1, func(ctx context.Context) (err error) { all, err = b.deliveredAll(ctx, s); return err }); err != nil {
			return err
		}
		if all && sure {
			return nil
		}
		if sure = all; sure {
			continue
		}
		select {
		case <-changed:
		case <-b.poke:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// deliveredAll reports whether nothing is left to deliver in state s. An open segment is delivered when every worker
// with a shard of it has read it to the end of a listing taken since the start.
func (b *Bridge) deliveredAll(ctx context.Context, s *offsets.State) (bool, error) {
	b.mu.Lock()
	joined, workers := b.joined, maps.Clone(b.workers)
	b.mu.Unlock()
	f := s.Frontier
	if !joined || f == nil {
		return false, nil
	}
	if err := b.Compatible(f.Feed, f.Settings); err != nil {
		return false, err // before a worker looks, which may be later than the end
	}
	if f.Ended {
		return true, nil
	}
	if f.Current != (source.Segment{}) {
		m, err := b.manifests.get(ctx, f.Current)
		if errors.Is(err, source.ErrNotFound) {
			return false, nil // the workers say what that means
		}
		if err != nil || m.Finalized {
			return false, err
		}
		for _, shard := range m.Shards {
			w := workers[int32(shard%b.leases)]
			if w == nil {
				continue // another instance delivers it
			}
			if d := w.drained.Load(); d == nil || *d != f.Current {
				return false, nil
			}
		}
	}
	_, more, err := b.next(ctx, f.At())
	return !more, err
}

// late reports whether a record comes at or below a marker that was written before it.
func (w *worker) late(ts envelope.Timestamp) bool { return ts.Compare(w.promised) <= 0 }
