package verify

import "slices"

// The feed and the state of the bridge say which markers a topic must have.

// Expect adds the marker of a segment of the feed. Call it before any record is shown. Then an unexpected marker is a
// failure, unless it is below all expected ones: the feed may have lost its start.
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

// Former adds the marker of a segment by the settings before a change. Such markers come before all markers by the
// settings of now.
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

// Unexpected returns the first markers that no segment explains.
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

// Due makes an expected marker required, at any time, unless it is at or below the marker of a seek.
func (v *Resolved) Due(resolved string) {
	if at, ok := parseClock([]byte(resolved)); ok && v.expected != nil {
		v.expected[at] = true
	}
}

// Last sets the bounds of the last marker, by the state of the bridge. An empty text is no bound.
func (v *Resolved) Last(least, most string) {
	v.least, _ = parseClock([]byte(least))
	v.most, _ = parseClock([]byte(most))
}

// Timeless declares records without a time (HEADERS=none, and no updated in the value): only the markers are judged.
func (v *Resolved) Timeless() { v.timeless = true }

// Ends sets the ends of the partitions that markers in a topic of their own name.
func (v *Resolved) Ends(ends map[int32]int64) { v.ends = ends }
