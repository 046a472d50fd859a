package history

import (
	"testing"
	"time"

	"blobfeed/offsets"
	"blobfeed/source"
)

// The frontier says how many segments are done and left while the bridge catches up, and nothing behind the last.
func TestFrontierCountsSegments(t *testing.T) {
	at := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	segment := func(n int) source.Segment { return source.SegmentAt(at.Add(time.Duration(n) * time.Hour)) }
	var names []source.Segment
	f, counting := &offsets.Frontier{Completed: segment(0)}, false
	count := func(n int) { counting = CountAhead(f, n, names, nil, at, counting) }
	expect := func(when string, done, left int) {
		t.Helper()
		switch c := f.CatchUp; {
		case left == 0 && c != nil, left > 0 && (c == nil || c.Done != done || c.Left != left):
			t.Errorf("%s: %+v, want %d done and %d left", when, c, done, left)
		}
	}
	complete := func(to, n int) {
		f.Completed = segment(to)
		count(n)
	}
	count(0)
	expect("before a listing", 0, 0)
	names = []source.Segment{segment(1), segment(2), segment(5), segment(6)} // hours without events have no segment
	count(0)
	expect("at first", 0, 4)
	complete(1, 1)
	expect("behind one", 1, 3)
	listed := names
	names, counting = nil, false
	complete(2, 1)
	expect("with another owner, which has listed nothing yet", 2, 2)
	if f.CatchUp.From != 2 || !f.CatchUp.Since.Equal(at) {
		t.Errorf("the speed is measured from what another owner did: %+v", f.CatchUp)
	}
	names = listed
	complete(5, 1)
	expect("before the last", 3, 1)
	count(0)
	expect("when the last is named", 3, 1)
	names = append(names, segment(7))
	complete(6, 1)
	expect("behind the last, with a newer one", 0, 0)
	names = append(names, segment(8), segment(9))
	count(0)
	expect("behind again", 0, 3)
	counting, f.Seek = false, &offsets.Seek{}
	f.CatchUp.Done = 7
	count(0)
	expect("after a seek, which is another way", 0, 3)
}
