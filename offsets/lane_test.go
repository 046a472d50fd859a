package offsets

import (
	"slices"
	"testing"
)

// Each partition is swept by one lease, and not again when it is judged.
func TestUnjudged(t *testing.T) {
	const leases = 4
	topics := map[string]int32{"a": 5, "b": 2}
	seen := map[Lane]int{}
	for lease := range int32(leases) {
		var l Listing
		for lanes := l.Unjudged(topics, lease, leases); len(lanes) > 0; {
			seen[lanes[0]]++
			l.Judged = &lanes[0]
			left := l.Unjudged(topics, lease, leases)
			if !slices.Equal(left, lanes[1:]) {
				t.Fatalf("lease %d has judged %v, and has %v left of %v", lease, lanes[0], left, lanes)
			}
			lanes = left
		}
	}
	for topic, n := range topics {
		for p := range n {
			if lane := (Lane{topic, p}); seen[lane] != 1 {
				t.Errorf("%v is swept by %d leases", lane, seen[lane])
			}
		}
	}
}
