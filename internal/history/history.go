// Package history knows the feed as time goes by: where a delivery starts, where a seek leads, which segment comes
// next, what retention has removed before it was delivered, and how far it is to the newest.
package history

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"blobfeed/envelope"
	"blobfeed/internal/pause"
	"blobfeed/offsets"
	"blobfeed/source"
)

// History is what the feed holds. All workers of an instance share the last manifest that was read: a finalized one
// stays true; an open one is read again when it is older than the caller accepts.
type History struct {
	feed *source.Feed
	poll time.Duration

	ahead atomic.Pointer[[]source.Segment] // of the segments after the frontier, as Watch has listed them

	// Guarded by turn.
	turn pause.Turn
	last source.Manifest
	read time.Time
}

// New returns the history of a feed. Poll is how often an open segment is looked at.
func New(feed *source.Feed, poll time.Duration) *History {
	return &History{feed: feed, poll: poll, turn: pause.NewTurn()}
}

// Manifest returns the manifest of seg, read after a moment. Most workers want the same one, so one reads it while
// the others wait. The lock is a turn, so that a worker can stop waiting when its context ends.
func (h *History) Manifest(ctx context.Context, seg source.Segment, after time.Time) (source.Manifest, error) {
	if err := h.turn.Take(ctx); err != nil {
		return source.Manifest{}, err
	}
	defer h.turn.Leave()
	if h.last.Segment == seg && h.read.After(after) && (h.last.Finalized || time.Since(h.read) < h.poll/2) {
		return h.last, nil
	}
	h.last = source.Manifest{} // if the manifest is gone now, nobody may use the former one
	began := time.Now()
	m, err := h.feed.Manifest(ctx, seg)
	if err != nil {
		return source.Manifest{}, err
	}
	h.last, h.read = m, began
	return m, nil
}

// Drained reports whether the segment of a manifest holds nothing behind a position in each of its shards.
func (h *History) Drained(
	ctx context.Context, m source.Manifest, at func(shard int) source.ShardPosition,
) (bool, error) {
	for _, shard := range m.Shards {
		r := h.feed.Shard(m, shard, at(shard))
		if err := r.Poll(ctx, false); err != nil {
			return false, err
		}
		var batch source.Batch
		err := r.Next(ctx, &batch)
		var damage *source.DamageError
		if err == nil || errors.As(err, &damage) { // damage is for who delivers it to report
			return false, nil
		}
		if !errors.Is(err, io.EOF) {
			return false, err
		}
	}
	return true, nil
}

// Next returns the segment after seg, the oldest for the zero segment.
func (h *History) Next(ctx context.Context, seg source.Segment) (source.Segment, bool, error) {
	for next, err := range h.feed.Segments(ctx, seg) {
		return next, err == nil, err
	}
	return source.Segment{}, false, nil
}

// GapError says that history is lost: a segment that was not delivered to its end is gone. Retention has deleted it,
// or, in a directory, somebody.
type GapError struct {
	At       source.Segment // the segment that the bridge has to read
	After    bool           // At was delivered: what followed it is gone, too
	Chunk    string         // what of At is gone; "" is all
	Oldest   source.Segment // where the feed begins now
	Recorded bool           // the bridge continues, and does not fail
}

func (e *GapError) Error() string {
	what := "segment " + e.At.String()
	if e.After {
		what = "what followed " + what
	}
	if e.Chunk != "" {
		what += ", chunk " + e.Chunk
	}
	text := fmt.Sprintf("history is lost: the next to read is %s, which the feed does not have any more; it begins at "+
		"segment %s now", what, e.Oldest)
	if e.Recorded {
		text += ", where the bridge continues; the gap is recorded"
	}
	return text
}

// LostAfter returns a GapError if history is lost between the completed segment of f and the oldest of the feed. Start
// is that of the frontier.
func (h *History) LostAfter(ctx context.Context, f *offsets.Frontier, start envelope.Timestamp) error {
	if scan := f.Scan; scan != nil && scan.Begin != (source.Segment{}) && f.Seek == nil &&
		f.Completed == source.Before(scan.Begin) {
		return h.lostBefore(ctx, f)
	}
	if f.Completed == (source.Segment{}) || f.Seek != nil || f.Completed == Before(start) ||
		f.Version > 1 && f.Ends.IsZero() {
		return nil // Completed is where delivery begins, not a segment that was delivered
	}
	_, err := h.feed.Manifest(ctx, f.Completed)
	err = h.Lost(ctx, f.Completed, err)
	var gap *GapError
	switch {
	case !errors.As(err, &gap):
		return err
	case !f.Ends.IsZero() && !gap.Oldest.Time().After(f.Ends):
		return nil // the oldest begins where the complete one ends: there was nothing between them
	case f.Gap != nil && f.Gap.To == gap.Oldest:
		return nil // recorded, and its marker is still to come
	}
	gap.After = true
	return err
}

// lostBefore is LostAfter before the first segment after an initial scan: retention may have reached it.
func (h *History) lostBefore(ctx context.Context, f *offsets.Frontier) error {
	oldest, ok, err := h.Next(ctx, source.Segment{})
	if err != nil || !ok || oldest.Compare(f.Scan.Begin) <= 0 || f.Gap != nil && f.Gap.To == oldest {
		return err
	}
	return &GapError{At: f.Scan.Begin, Oldest: oldest}
}

// LostAt returns a GapError if history behind a frontier is lost, as a start would find it.
func (h *History) LostAt(ctx context.Context, f *offsets.Frontier) error {
	if f.Ended || f.Moving || f.Scan.Active() {
		return nil
	}
	if f.Current != (source.Segment{}) {
		_, err := h.feed.Manifest(ctx, f.Current)
		return h.Lost(ctx, f.Current, err)
	}
	start, err := ParseStored(f.Start)
	if err != nil {
		return err
	}
	return h.LostAfter(ctx, f, start)
}

// Lost turns "not found", of the manifest of seg, into a GapError if the feed begins after it. A manifest that is
// missing in the middle of the feed is not a gap but a failure, which may pass.
func (h *History) Lost(ctx context.Context, seg source.Segment, err error) error {
	if !errors.Is(err, source.ErrNotFound) {
		return err
	}
	oldest, ok, lerr := h.Next(ctx, source.Segment{})
	if lerr != nil || !ok || oldest.Compare(seg) <= 0 {
		return errors.Join(err, lerr)
	}
	return &GapError{At: seg, Oldest: oldest}
}
