package verify

import (
	"maps"
	"slices"
)

// What is known of the markers of a topic beyond the topic itself: from the feed, and from the state of the bridge.

// Expect says that a segment of the feed ends with this marker, before any record is shown. A marker that is not
// expected then fails, unless it is from before all of them: the feed may have lost its begin.
func (v *Resolved) Expect(resolved string) {
	at, ok := parseClock([]byte(resolved))
	if !ok {
		return
	}
	if len(v.expected) == 0 || at.compare(v.earliest) < 0 {
		v.earliest = at
	}
	if v.expected == nil {
		v.expected = map[clock]bool{}
	}
	if _, known := v.expected[at]; !known {
		v.expected[at] = false
	}
}

// Former says how the marker of a segment was before a change of settings: right in front of all that are as expected
// now.
func (v *Resolved) Former(resolved string) {
	at, ok := parseClock([]byte(resolved))
	if !ok {
		return
	}
	if v.former == nil {
		v.former = map[clock]bool{}
	}
	v.former[at] = true
}

// Unexpected returns the first markers that no segment gives reason for.
func (v *Resolved) Unexpected() []string { return v.unexpected }

// Came reports whether a partition has a marker.
func (v *Resolved) Came(resolved string) bool {
	at, _ := parseClock([]byte(resolved))
	for _, lanes := range v.topics.all {
		for _, l := range *lanes {
			if slices.Contains(l.markers, at) {
				return true
			}
		}
	}
	return false
}

// Due says, at any time, that an expected marker has to be there. Those at or below the marker of a seek need not be.
func (v *Resolved) Due(resolved string) {
	if at, ok := parseClock([]byte(resolved)); ok && v.expected != nil {
		v.expected[at] = true
	}
}

// Last says between which times the last marker is, by the bridge's own state. An empty text says nothing.
func (v *Resolved) Last(least, most string) {
	v.least, _ = parseClock([]byte(least))
	v.most, _ = parseClock([]byte(most))
}

// Timeless says that records say no time (HEADERS=none, and no updated in the value): only the markers are judged.
func (v *Resolved) Timeless() { v.timeless = true }

// Ends says where the partitions end, of which markers in a topic of their own speak.
func (v *Resolved) Ends(ends map[int32]int64) { v.ends = ends }

// wanted returns the markers that each partition has to have: what one of them has, and what is due.
func (v *Resolved) wanted(lanes map[int32]*lane) []clock {
	all := map[clock]bool{}
	var seek clock
	for _, l := range lanes {
		for _, m := range l.markers {
			all[m] = true
		}
		if l.seek.compare(seek) > 0 {
			seek = l.seek
		}
	}
	for m, due := range v.expected {
		if due && m.compare(seek) > 0 {
			all[m] = true
		}
	}
	return slices.SortedFunc(maps.Keys(all), clock.compare)
}
