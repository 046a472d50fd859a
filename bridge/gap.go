package bridge

import (
	"context"
	"errors"
	"fmt"

	"blobfeed/offsets"
	"blobfeed/source"
)

// GapError says that history is lost: the account's retention has removed a segment that was not delivered to its end.
type GapError struct {
	Lost   source.Segment // the first one that is gone
	Oldest source.Segment // where the feed begins now
}

func (e *GapError) Error() string {
	return fmt.Sprintf("history is lost: segment %s is to be read next, and the account's retention has removed it; the feed begins at %s now. "+
		"Set BRIDGE_ON_GAP=continue to go on there (the gap is recorded), or use another BRIDGE_NAME to start over", e.Lost, e.Oldest)
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
	return &GapError{Lost: seg, Oldest: oldest}
}

// skipGap commits a frontier that goes on at the oldest segment there is, and keeps the gap for the next marker.
func (w *worker) skipGap(f offsets.Frontier, gap *GapError) error {
	w.Log.Warn("history is lost; going on at the oldest segment", "lost", gap.Lost, "oldest", gap.Oldest)
	f.Completed, f.Current = gap.Lost, gap.Oldest
	f.Gap = &offsets.Gap{From: gap.Lost, To: gap.Oldest}
	f.Gaps++
	w.Observer.Failed(w.p, gap)
	return w.lease.Commit(w.hard, nil, &f)
}
