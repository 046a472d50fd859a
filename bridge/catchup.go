package bridge

import (
	"context"
	"slices"
	"time"

	"blobfeed/offsets"
	"blobfeed/source"
)

// listNames lists the segments after one, for countSegments. Nobody waits for it: a year has thousands.
func (sh *shared) listNames(ctx context.Context, after source.Segment) error {
	names := []source.Segment{}
	for seg, err := range sh.opts.Feed.Segments(ctx, after) {
		if err != nil {
			return err
		}
		names = append(names, seg)
	}
	sh.names.Store(&names)
	return nil
}

// countSegments puts into f, of which some segments were just completed, how far the bridge is on its way to the newest
// segment. Live, one segment is left, or two while the service finalizes the former: a catch-up begins with more than
// one, and ends behind the last.
func (k *keeper) countSegments(f *offsets.Frontier, completed int) {
	was, names := f.CatchUp, k.h.shared.names.Load()
	if was != nil && f.Seek != nil && !k.counting { // the seek starts another catch-up
		was = nil
	}
	left, before := 0, 0
	if was != nil {
		before = was.Left - completed
		left = max(before, 0)
	}
	if names != nil {
		i, found := slices.BinarySearchFunc(*names, f.Completed, source.Segment.Compare)
		if found {
			i++
		}
		left = len(*names) - i
	}
	if left == 0 || left == 1 && before < 1 {
		f.CatchUp, k.counting = nil, false
		return
	}
	now := offsets.CatchUp{Left: left}
	if was != nil {
		now = *was
		now.Done, now.Left = was.Done+completed, left
	}
	if was == nil || !k.counting {
		now.Since, now.From, now.Read = k.h.opts.Now().UTC().Truncate(time.Millisecond), now.Done, 0
		s, _, _ := k.h.shared.view.Get()
		for _, c := range s.Cursors {
			if c != nil {
				now.Read += c.Counts.Read
			}
		}
	}
	f.CatchUp, k.counting = &now, true
}
