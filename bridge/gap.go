package bridge

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"blobfeed/internal/mutation"
	"blobfeed/offsets"
	"blobfeed/source"
)

// GapError says that history is lost: the account's retention has removed a segment that was not delivered to its end.
type GapError struct {
	At     source.Segment // where the bridge stands
	Chunk  string         // what of it is gone; "" is all
	Oldest source.Segment // where the feed begins now
}

func (e *GapError) Error() string {
	what := "segment " + e.At.String()
	if e.Chunk != "" {
		what += ", chunk " + e.Chunk
	}
	return fmt.Sprintf("history is lost: the bridge stands at %s, which the account's retention has removed; the feed begins at segment %s now. "+
		"Set BRIDGE_ON_GAP=continue to go on with what is left (the gap is recorded), or start over with bridge reset, or with another BRIDGE_NAME and BRIDGE_TOPIC", what, e.Oldest)
}

// lost turns "not found", said of the manifest of seg, into a GapError if the feed begins after it. A manifest that is
// missing in the middle of the feed is no gap but trouble, which may pass.
func (b *Bridge) lost(ctx context.Context, seg source.Segment, err error) error {
	if !errors.Is(err, source.ErrNotFound) {
		return err
	}
	oldest, ok, lerr := b.next(ctx, source.Segment{})
	if lerr != nil || !ok || oldest.Compare(seg) <= 0 {
		return errors.Join(err, lerr)
	}
	return &GapError{At: seg, Oldest: oldest}
}

// lose deals with the loss of what this lease has not delivered of the current segment (J, G). Its owner alone may
// say so, and
// only after a fence that is later than the finding: what is gone now may have been delivered by another owner before.
func (w *worker) lose(gap *GapError) error {
	if !w.SkipGaps {
		return w.doubt(gap)
	}
	// The loss is recorded like a delivery: the cursor is done, with a gap, and the barrier takes it from there. The
	// frontier
	// does not jump: other leases may have the segment's events in memory, and deliver them (I4, I11).
	w.report(gap)
	mutation.Crash("gap", "found")
	w.cursor.Finish(gap.At)
	w.cursor.Gap = true
	w.txn.reset(gap.At)
	w.txn.start()
	return w.commit()
}

// doubt returns gap if an earlier hold found it, too. Else it ends the hold, so that the next one looks behind its
// own fence.
func (w *worker) doubt(gap *GapError) error {
	place := gap.At.String() + " " + gap.Chunk
	if w.doubted != place {
		w.doubted = place
		return errDoubt
	}
	return gap
}

func (w *worker) report(gap *GapError) {
	w.Log.Warn("history is lost; continuing with what is left", "lease", w.p, "lost", gap.At, "oldest", gap.Oldest)
	w.Observer.Failed(w.p, gap)
}

// recordGap puts lost history into f, for the next marker.
func recordGap(f *offsets.Frontier, from, to source.Segment) {
	gap := offsets.Gap{From: from, To: to}
	if f.Gap != nil {
		gap.From = f.Gap.From
	} else {
		f.Gaps++
	}
	f.Gap = &gap // the one before may be of a state that others read
}

// lostSince looks, between two segments, whether the last complete one is gone by now: then those between it and the
// oldest
// there is may be gone, too, unread. With ON_GAP=continue it records that in f.
func (w *worker) lostSince(f *offsets.Frontier) error {
	if f.Completed == (source.Segment{}) || f.Seek != nil || f.Completed == before(w.filter.From) ||
		f.Version > 1 && f.Ends.IsZero() {
		return nil // not a segment of the feed, but where to begin
	}
	err := w.retry(w.work, w.p, func(ctx context.Context) error {
		if _, err := w.Feed.Manifest(ctx, f.Completed); err != nil {
			return w.lost(ctx, f.Completed, err)
		}
		return nil
	})
	var gap *GapError
	switch {
	case !errors.As(err, &gap):
		return err
	case !f.Ends.IsZero() && !gap.Oldest.Time().After(f.Ends):
		return nil // the oldest begins where the complete one ends: there was nothing between them
	case f.Gap != nil && f.Gap.To == gap.Oldest:
		return nil // recorded, and its marker is still to come
	case !w.SkipGaps:
		return w.doubt(gap)
	}
	w.report(gap)
	recordGap(f, gap.At, gap.Oldest)
	return nil
}

// isThere reports whether the manifest of seg is there, read after a moment. If it is not, neither may its chunks be,
// and a
// listing before that moment proves nothing.
func (w *worker) isThere(seg source.Segment, moment time.Time) (there bool, err error) {
	err = w.ask(w.work, func(ctx context.Context) error {
		_, err := w.manifests.getSince(ctx, seg, moment)
		if there = err == nil; errors.Is(err, source.ErrNotFound) {
			return nil
		}
		return err
	})
	return there, err
}

// chunkLost returns the loss of a chunk that was to be read.
func (s *shardPass) chunkLost(ctx context.Context, d *source.DamageError) error {
	oldest, _, err := s.Bridge.next(ctx, source.Segment{})
	if err != nil {
		return err
	}
	return &GapError{At: s.m.Segment, Chunk: d.Blob, Oldest: oldest}
}

// watchHistory reports, while this instance holds lease 0, how far the feed reaches back and forth from where the bridge stands.
func (b *Bridge) watchHistory(ctx context.Context) {
	if _, err := b.view.Await(ctx, func(s *offsets.State) bool { return s.Frontier != nil }); err != nil {
		return // the instance is stopping
	}
	var oldest source.Segment
	var due time.Time // for another look at the oldest
	for {
		next := b.PollInterval
		if slices.Contains(b.held(), 0) {
			back := !b.Now().Before(due)
			told, err := b.history(ctx, &oldest, back)
			if err != nil && ctx.Err() == nil {
				b.Observer.Failed(-1, err)
			}
			if told || err != nil {
				next *= newestPolls
				if back {
					due = b.Now().Add(headroomInterval)
				}
			}
		}
		if sleep(ctx, next) != nil {
			return
		}
	}
}

// history reports what there is, if there is anything; back asks for the oldest segment anew.
func (b *Bridge) history(ctx context.Context, oldest *source.Segment, back bool) (told bool, _ error) {
	s, _, err := b.view.Get()
	if err != nil {
		return false, err
	}
	if s.Frontier == nil { // a reset took it away, and the next owner of lease 0 has yet to begin
		return false, nil
	}
	at := s.Frontier.At()
	if back {
		if *oldest, _, err = b.next(ctx, source.Segment{}); err != nil {
			return false, fmt.Errorf("looking for the oldest segment: %w", err)
		}
	}
	newest, err := b.Feed.LastConsumable(ctx)
	if err != nil {
		return false, err
	}
	if *oldest == (source.Segment{}) || at == (source.Segment{}) {
		return false, nil
	}
	b.Observer.History(History{Headroom: at.Time().Sub(oldest.Time()), Newest: newest})
	return true, nil
}
