package verify

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

// Of sets the feed whose markers these are, if it is known.
func (v *Resolved) Of(feed string) { v.feed = feed }

// State sets what the state of the bridge says, read after the topic: that it was never moved, and that no history was
// lost. Markers that say otherwise are a failure.
func (v *Resolved) State(unmoved, whole bool) { v.unmoved, v.whole = unmoved, whole }

// Timeless declares records without a time (HEADERS=none, and no updated in the value): only the markers are judged.
func (v *Resolved) Timeless() { v.timeless = true }

// Ends sets the ends of the partitions that markers in a topic of their own name.
func (v *Resolved) Ends(ends map[int32]int64) { v.ends = ends }
