package bridge

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

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

// skipGap commits, where err is lost history and the settings say so, a frontier that goes on at the oldest segment there
// is, and keeps the gap for the next marker.
func (w *worker) skipGap(f offsets.Frontier, s *offsets.State, err error) (moved bool, _ error) {
	var gap *GapError
	if !w.SkipGaps || !errors.As(err, &gap) {
		return false, err
	}
	w.Log.Warn("history is lost; going on at the oldest segment", "lost", gap.At, "oldest", gap.Oldest)
	w.Observer.Failed(w.p, gap)
	for _, c := range s.Cursors { // I6: topics that were found in what is left there get the marker, too
		if c != nil {
			f.Adopt(c.Pins)
		}
	}
	f.Completed, f.Current = gap.At, gap.Oldest
	f.Gap = &offsets.Gap{From: gap.At, To: gap.Oldest}
	f.Gaps++
	return true, w.lease.Commit(w.hard, nil, &f)
}

// lostSince returns a GapError if the last complete segment is gone by now: then those between it and the oldest there is
// may be gone, too, unread.
func (w *worker) lostSince(f *offsets.Frontier) error {
	if f.Completed == (source.Segment{}) || f.Seek != nil || f.Completed == before(w.filter.From) {
		return nil // not a segment of the feed, but where to begin
	}
	return w.retry(w.soft, w.p, func(ctx context.Context) error {
		if _, err := w.Feed.Manifest(ctx, f.Completed); err != nil {
			return w.lost(ctx, f.Completed, err)
		}
		return nil
	})
}

// goneSince reports whether the manifest of seg was found missing after a moment: its chunks may be, too, and what a listing
// after that did not show proves nothing.
func (w *worker) goneSince(seg source.Segment, moment time.Time) (gone bool, err error) {
	err = w.ask(func(ctx context.Context) error {
		_, err := w.manifests.getSince(ctx, seg, moment)
		if gone = errors.Is(err, source.ErrNotFound); gone {
			return nil
		}
		return err
	})
	return gone, err
}

// chunkLost tells of a chunk that was to be read and is not there any more.
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
