package bridge

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"blobfeed/internal/testing/feedsim"
	"blobfeed/offsets"
)

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
	o.Pace.BundleBytes, o.Kafka.Leases = 0, 1
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
