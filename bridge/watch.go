package bridge

import (
	"context"
	"fmt"
	"time"

	"blobfeed/internal/pause"
	"blobfeed/offsets"
	"blobfeed/source"
)

// headroomInterval is how often the oldest segment is looked for: three listings each time.
const headroomInterval = 10 * time.Minute

// newestPolls is how many polls there are between two looks at the newest segment: one small read.
const newestPolls = 4

// watchHistory reports how far the feed reaches back and ahead of the bridge's position, while keeps says that this
// instance has lease 0.
func (inst *instance) watchHistory(ctx context.Context, keeps func() bool) {
	if _, err := inst.view.Await(ctx, func(s *offsets.State) bool { return s.Frontier != nil }); err != nil {
		return // the instance is stopping
	}
	var oldest source.Segment
	var due time.Time    // for another look at the oldest
	var listed time.Time // the newest segment, when those ahead were listed
	for {
		wait := inst.opts.PollInterval
		if keeps() {
			back := !inst.opts.Now().Before(due)
			reported, err := inst.reportHistory(ctx, &oldest, &listed, back)
			if err != nil && ctx.Err() == nil {
				inst.opts.Observer.Failed(-1, err)
			}
			if reported || err != nil {
				wait *= newestPolls
				if back {
					due = inst.opts.Now().Add(headroomInterval)
				}
			}
		}
		if pause.For(ctx, wait) != nil {
			return
		}
	}
}

// reportHistory reports how far the feed reaches, if it holds anything; back looks for the oldest segment again. The
// segments ahead are listed when there is a newer one.
func (inst *instance) reportHistory(
	ctx context.Context, oldest *source.Segment, listed *time.Time, back bool,
) (reported bool, _ error) {
	s, _, err := inst.view.Get()
	if err != nil {
		return false, err
	}
	if s.Frontier == nil { // a reset took it away, and the next owner of lease 0 has yet to write one
		return false, nil
	}
	at := s.Frontier.At()
	if back {
		if *oldest, _, err = inst.history.segmentAfter(ctx, source.Segment{}); err != nil {
			return false, fmt.Errorf("looking for the oldest segment: %w", err)
		}
	}
	consumable, err := inst.opts.Feed.LastConsumable(ctx)
	if err != nil {
		return false, err
	}
	if source.SegmentAt(consumable).Compare(at) > 0 && !consumable.Equal(*listed) { // an idle account costs no listing
		if err = inst.listNames(ctx, s.Frontier.Completed); err == nil {
			*listed = consumable
		} else {
			err = fmt.Errorf("listing the segments ahead: %w", err)
		}
	}
	if *oldest != (source.Segment{}) && at != (source.Segment{}) {
		// Before its first segment, as behind a scan, the position is the minute before that.
		inst.opts.Observer.History(History{
			Headroom: max(0, at.Time().Sub(oldest.Time())), Newest: inst.newest(at).Time(),
		})
		reported = true
	}
	return reported, err
}

// newest returns the newest segment that is known. How far the feed may be read says nothing of it: an idle account has
// days without a segment.
func (inst *instance) newest(at source.Segment) source.Segment {
	if names := inst.names.Load(); names != nil && len(*names) > 0 {
		if last := (*names)[len(*names)-1]; last.Compare(at) > 0 {
			return last
		}
	}
	return at
}
