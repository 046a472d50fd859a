//go:build !race

package protocol

import (
	"os"
	"testing"
)

// The situations of a topic that grows.
var (
	laneRight = laneRules{marked: true, today: true, grows: 2}
	laneLater = with(laneRight, func(r *laneRules) { r.losses, r.scans = 1, 1 })
	laneMoved = with(laneRight, func(r *laneRules) { r.seeks, r.both = 1, true })
	laneMixed = with(laneLater, func(r *laneRules) { r.seeks, r.cancels = 1, 1 })
	laneFirst = with(laneRight, func(r *laneRules) { r.first, r.seeks, r.both = true, 1, true })
	laneBack  = with(laneLater, func(r *laneRules) { r.grows = 3 })
	laneTwice = with(laneLater, func(r *laneRules) { r.scans, r.cancels = 2, 1 })
	laneWide  = with(laneLater, func(r *laneRules) { r.both = true })
)

func with(r laneRules, do func(*laneRules)) laneRules {
	do(&r)
	return r
}

// With the rules, scans of a topic that grows keep their promises, whatever is sought, lost or cancelled meanwhile, and
// wherever the writer crashes.
func TestLanesClean(t *testing.T) {
	for _, c := range []struct {
		name  string
		rules laneRules
		large bool
	}{
		{"loss", laneLater, false},
		{"loss, grown twice", laneBack, false},
		{"seek", laneMoved, false},
		{"first scan, seek", laneFirst, false},
		{"loss, seek, cancel", laneMixed, false},
		{"loss, two blobs", laneWide, true},
		{"loss, two scans, cancel", laneTwice, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.large && os.Getenv("PROTOCOL_FULL") == "" {
				t.Skip("only with PROTOCOL_FULL=1")
			}
			check(t, c.rules, "")
		})
	}
}

// TestLanesReverts takes a rule away.
func TestLanesReverts(t *testing.T) {
	for _, c := range []struct {
		revert, broken string
		situation      laneRules
		do             func(*laneRules)
	}{
		{"counts are taken with a marker, behind a seek", laneSplit, laneMoved,
			func(r *laneRules) { r.marked = false }},
		{"counts are taken with a marker, not with a name", laneSplit, laneLater,
			func(r *laneRules) { r.advances = true }},
		{"counts stay until the first marker behind the first scan", laneSplit, laneFirst,
			func(r *laneRules) { r.barless = true }},
		{"a deletion goes where the key belongs", laneSplit, laneLater, func(r *laneRules) { r.today = false }},
		{"nothing is delivered in a round", laneDiverged, laneLater, func(r *laneRules) { r.noHold = true }},
		{"an answer is of the round in which it is written", laneDiverged, laneLater,
			func(r *laneRules) { r.oldHeads = true }},
		{"counts are taken with a higher marker, not with one that a seek repeats", laneLate, laneMoved,
			func(r *laneRules) { r.untold = true }},
		{"a key is asked for wherever it lives, not only where it belongs", laneDiverged, laneBack,
			func(r *laneRules) { r.once = true }},
	} {
		t.Run(c.revert, func(t *testing.T) {
			rules := c.situation
			c.do(&rules)
			check(t, rules, c.broken)
		})
	}
}
