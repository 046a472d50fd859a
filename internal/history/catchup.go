package history

import (
	"slices"
	"time"

	"blobfeed/offsets"
	"blobfeed/source"
)

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
