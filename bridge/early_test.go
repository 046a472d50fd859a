package bridge

import (
	"testing"

	"blobfeed/bridge/pipeline"
	"blobfeed/offsets"
	"blobfeed/source"
)

// A look that was made while the bundle before was committed holds for the segments that were listed by then, and for
// no others (I8).
func TestEarlyLookClears(t *testing.T) {
	hour := func(n int) source.Segment { return source.SegmentAt(hourOf(n)) }
	over := make(chan struct{})
	close(over)
	for name, c := range map[string]struct {
		early                  *early
		completed, first, last int
		want                   bool
	}{
		"all was listed":          {&early{hour(1), hour(2), hour(5), over, true}, 1, 2, 5, true},
		"nobody has looked":       {nil, 1, 2, 5, false},
		"something is lost":       {&early{hour(1), hour(2), hour(5), over, false}, 1, 2, 5, false},
		"one was listed later":    {&early{hour(1), hour(2), hour(5), over, true}, 1, 2, 6, false},
		"behind another frontier": {&early{hour(1), hour(2), hour(5), over, true}, 0, 2, 5, false},
		"another one is next":     {&early{hour(1), hour(2), hour(5), over, true}, 1, 3, 5, false},
	} {
		b := &bundle{frontier: offsets.Frontier{Completed: hour(c.last)}, segments: []gathered{
			{small: &pipeline.Small{Manifest: source.Manifest{Segment: hour(c.first)}}}}}
		if got := c.early.clears(&offsets.Frontier{Completed: hour(c.completed)}, b); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
}
