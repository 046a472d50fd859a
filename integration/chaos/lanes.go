package chaos

import (
	"fmt"

	"blobfeed/verify"
)

// lanes checks that between two markers all records of a key are in one partition (I5). Markers are counted from the
// last one back: that one is in every partition, and partitions that were added later lack the first ones.
type lanes struct {
	markers map[int32]int
	keys    map[string]int
	where   map[spot]struct{}
	checked int64
}

// spot is that a key has records in a partition, behind a number of markers of it.
type spot struct {
	key       int
	partition int32
	markers   int
}

var _ verify.Validator = (*lanes)(nil)

func newLanes() *lanes {
	return &lanes{markers: map[int32]int{}, keys: map[string]int{}, where: map[spot]struct{}{}}
}

// Note implements verify.Validator.
func (l *lanes) Note(r verify.Record) {
	if r.Key == nil {
		l.markers[r.Partition]++
		return
	}
	l.checked++
	key, known := l.keys[string(r.Key)]
	if !known {
		key = len(l.keys)
		l.keys[string(r.Key)] = key
	}
	l.where[spot{key, r.Partition, l.markers[r.Partition]}] = struct{}{}
}

// Failures implements verify.Validator.
func (l *lanes) Failures() (failures []verify.Failure) {
	type interval struct{ key, following int }
	in := map[interval]int32{}
	for s := range l.where {
		at := interval{s.key, l.markers[s.partition] - s.markers}
		if other, known := in[at]; known && other != s.partition && len(failures) < keptFailures {
			failures = append(failures, verify.Failure{Problem: fmt.Sprintf(
				"a key is in partitions %d and %d, with %d markers behind it in both", other, s.partition,
				at.following)})
		}
		in[at] = s.partition
	}
	return failures
}

// Checked is how many records were judged.
func (l *lanes) Checked() int64 { return l.checked }
