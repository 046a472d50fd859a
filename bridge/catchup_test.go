package bridge

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"blobfeed/internal/testing/feedsim"
	"blobfeed/offsets"
	"blobfeed/source"
)

// The frontier says how many segments are done and left while the bridge catches up, and nothing behind the last.
func TestFrontierCountsSegments(t *testing.T) {
	at := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	segment := func(n int) source.Segment { return source.SegmentAt(at.Add(time.Duration(n) * time.Hour)) }
	var names []source.Segment
	f, counting := &offsets.Frontier{Completed: segment(0)}, false
	count := func(n int) { counting = countSegments(f, n, names, nil, at, counting) }
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

// The names are listed and the count is in the state, where every instance and the verb status see it.
func TestCatchUpShowsInTheState(t *testing.T) {
	t.Parallel()
	m, feed := simulated(t, feedsim.Spec{})
	for range 4 {
		must(t, errors.Join(feed.Append(t.Context(), 20, nil), feed.Next(t.Context())))
	}
	must(t, feed.Append(t.Context(), 20, nil))
	var held atomic.Bool
	held.Store(true)
	m.onRead = func(name string) error {
		if held.Load() && strings.HasPrefix(name, "log/") && !strings.Contains(name, "/0000/") {
			return errors.New("held")
		}
		return nil
	}
	o, _ := over(t, broker(t), m)
	o.BundleBytes, o.OffsetsPartitions = 0, 1
	live(t, o)
	s := awaitState(t, o, "a failure shows", func(s *offsets.State) bool {
		return s.Cursors[0] != nil && s.Cursors[0].Failing
	})
	if c := s.Cursors[0]; c.Error == nil || !strings.Contains(c.Error.Error, "held") {
		t.Errorf("failing for %+v", c.Error)
	}
	held.Store(false)
	awaitState(t, o, "segments are left", func(s *offsets.State) bool {
		return s.Frontier != nil && s.Frontier.CatchUp != nil && s.Frontier.CatchUp.Left > 0
	})
	s = awaitState(t, o, "all is delivered, and nothing fails", func(s *offsets.State) bool {
		c := s.Cursors[0]
		return c != nil && c.Counts.Read == 100 && !c.Failing && c.Ahead == 0
	})
	if c := s.Cursors[0]; c.Listed == 0 || c.Error == nil {
		t.Errorf("%d bytes are listed in the open segment, the last error is %v", c.Listed, c.Error)
	}
}
