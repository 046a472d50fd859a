package history

import (
	"context"
	"fmt"
	"slices"
	"time"

	"blobfeed/internal/pause"
	"blobfeed/offsets"
	"blobfeed/source"
)

// headroomInterval is how often the oldest segment is looked for: three listings each time.
const headroomInterval = 10 * time.Minute

// newestPolls is how many polls there are between two looks at the newest segment: one small read.
const newestPolls = 4

// Watcher receives how far the feed reaches.
type Watcher struct {
	View   *offsets.View
	Keeps  func() bool // whether this instance has lease 0: the others do not look
	Now    func() time.Time
	Failed func(error)
	// Report gets how much of the feed is older than what is to be read next, and its newest segment.
	Report func(headroom time.Duration, newest source.Segment)
}

// listing says what the segments ahead were, when they were listed.
type listing struct {
	after  source.Segment // the one before them
	newest time.Time
}

// Watch reports from time to time how far the feed reaches back and ahead of the bridge's position.
func (h *History) Watch(ctx context.Context, w Watcher) {
	if _, err := w.View.Await(ctx, func(s *offsets.State) bool { return s.Frontier != nil }); err != nil {
		return // the instance is stopping
	}
	var oldest source.Segment
	var due time.Time // for another look at the oldest
	var listed listing
	for {
		wait := h.poll
		if w.Keeps() {
			back := !w.Now().Before(due)
			reported, err := h.look(ctx, w, &oldest, &listed, back)
			if err != nil && ctx.Err() == nil {
				w.Failed(err)
			}
			if reported || err != nil {
				wait *= newestPolls
				if back {
					due = w.Now().Add(headroomInterval)
				}
			}
		}
		if pause.For(ctx, wait) != nil {
			return
		}
	}
}

// look reports how far the feed reaches, if it holds anything; back looks for the oldest segment again. The segments
// ahead are listed when there is a newer one, or a seek has gone back.
func (h *History) look(
	ctx context.Context, w Watcher, oldest *source.Segment, listed *listing, back bool,
) (reported bool, _ error) {
	s, _, err := w.View.Get()
	if err != nil {
		return false, err
	}
	if s.Frontier == nil { // a reset took it away, and the next owner of lease 0 has yet to write one
		return false, nil
	}
	at := s.Frontier.At()
	if back {
		if *oldest, _, err = h.Next(ctx, source.Segment{}); err != nil {
			return false, fmt.Errorf("looking for the oldest segment: %w", err)
		}
	}
	consumable, err := h.feed.LastConsumable(ctx)
	if err != nil {
		return false, err
	}
	after := s.Frontier.Completed
	news := !consumable.Equal(listed.newest) || after.Compare(listed.after) < 0 // an idle account costs no listing
	if source.SegmentAt(consumable).Compare(at) > 0 && news {
		if err = h.listAhead(ctx, after); err == nil {
			*listed = listing{after, consumable}
		} else {
			err = fmt.Errorf("listing the segments ahead: %w", err)
		}
	}
	if *oldest != (source.Segment{}) && at != (source.Segment{}) {
		// Before its first segment, as behind a scan, the position is the minute before that.
		w.Report(max(0, at.Time().Sub(oldest.Time())), h.newest(at))
		reported = true
	}
	return reported, err
}

// listAhead lists the segments after one. Nobody waits for it: a year has thousands.
func (h *History) listAhead(ctx context.Context, after source.Segment) error {
	names := []source.Segment{}
	for seg, err := range h.feed.Segments(ctx, after) {
		if err != nil {
			return err
		}
		names = append(names, seg)
	}
	h.ahead.Store(&names)
	return nil
}

// Ahead returns the segments after the frontier as they were listed last, nil if they were not.
func (h *History) Ahead() []source.Segment {
	if names := h.ahead.Load(); names != nil {
		return *names
	}
	return nil
}

// newest returns the newest segment that is known. How far the feed may be read says nothing of it: an idle account has
// days without a segment.
func (h *History) newest(at source.Segment) source.Segment {
	if names := h.Ahead(); len(names) > 0 {
		if last := names[len(names)-1]; last.Compare(at) > 0 {
			return last
		}
	}
	return at
}

// Azure appends to each shard of an open segment once a minute, if there is something to append (measured in real
// chunks). The times of appends have whole seconds, so a look a second later could come just before the next append.
const (
	appendInterval = time.Minute
	behindAppend   = 2 * time.Second
)

// NextLook returns how long to wait before the next look at a shard. The last look was late by this much after an
// append, or found none if late is negative.
//
// Looks come every interval. Where they are in the minute is chance, so without more they would be late by half an
// interval on average. If some looks of each minute are at the same place as those of the minute before, and one was
// late, a longer wait moves all later ones: the next append is found as soon as it is there, with fewer requests than
// before, not more. A clock that differs from the service's moves them elsewhere, which is no worse than chance.
func NextLook(interval, late time.Duration) time.Duration {
	if appendInterval%interval != 0 || late <= behindAppend || late > interval+time.Second {
		return interval
	}
	return 2*interval - late + behindAppend
}

// CountAhead puts into f, of which some segments were just completed, how far the bridge is on its way to the newest
// of names, which may be nil: not known. Live, one segment is left, or two while the service finalizes the former: a
// catch-up begins with more than one, and ends behind the last. Counting says that this tenure has counted before, and
// the result that it has now: the speed is measured from its first time.
func CountAhead(
	f *offsets.Frontier, completed int, names []source.Segment, cursors []*offsets.Cursor, now time.Time, counting bool,
) bool {
	was := f.CatchUp
	if was != nil && f.Seek != nil && !counting { // the seek starts another catch-up
		was = nil
	}
	left, before := 0, 0
	if was != nil {
		before = was.Left - completed
		left = max(before, 0)
	}
	if names != nil {
		i, found := slices.BinarySearchFunc(names, f.Completed, source.Segment.Compare)
		if found {
			i++
		}
		left = len(names) - i
	}
	if left == 0 || left == 1 && before < 1 {
		f.CatchUp = nil
		return false
	}
	is := offsets.CatchUp{Left: left}
	if was != nil {
		is = *was
		is.Done, is.Left = was.Done+completed, left
	}
	if was == nil || !counting {
		is.Since, is.From, is.Read = now.UTC().Truncate(time.Millisecond), is.Done, 0
		for _, c := range cursors {
			if c != nil {
				is.Read += c.Counts.Read
			}
		}
	}
	f.CatchUp = &is
	return true
}
