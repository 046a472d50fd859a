package history

import (
	"context"
	"fmt"
	"slices"
	"time"

	"blobfeed/source"
)

// End is where the feed ends. If no segment is open, Completed is the newest, which ends at Ends.
type End struct {
	Open, Completed source.Segment
	Ends            time.Time
}

// openSegments bounds how far before its newest segment the feed may have an open one. All samples have one open
// segment, the newest.
const openSegments = 48 * time.Hour

// End finds the first open segment of the feed.
func (h *History) End(ctx context.Context) (*End, error) {
	var last []source.Segment // not by the watermark: the newest that is there may be years older
	for seg, err := range h.feed.Segments(ctx, source.Segment{}) {
		if err != nil {
			return nil, fmt.Errorf("looking for the end of the feed: %w", err)
		}
		from := source.SegmentAt(seg.Time().Add(-openSegments))
		last = append(slices.DeleteFunc(last, func(s source.Segment) bool { return s.Compare(from) < 0 }), seg)
	}
	var end End
	for _, seg := range last {
		m, err := h.feed.Manifest(ctx, seg)
		if err != nil {
			return nil, fmt.Errorf("looking for the end of the feed: %w", err)
		}
		if !m.Finalized {
			end.Open = seg
			break
		}
		end.Completed, end.Ends = seg, m.Begin.Add(m.Interval)
	}
	return &end, nil
}
