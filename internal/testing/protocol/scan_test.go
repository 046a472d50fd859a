//go:build !race

package protocol

import "testing"

var (
	allScanRules = scanRules{
		startFirst: true, rowsFirst: true, waitsTend: true, storesTend: true, fence: true, lowRows: true,
		rises: true, crashes: 1, acks: true, holds: true, servedRows: true, sweeps: true, drops: true,
		sameRound: true, positions: true,
	}
	rescanRules = func() scanRules { r := allScanRules; r.rescan, r.crashes = true, 0; return r }()
)

// With all rules the topic becomes the account, and markers are right: after a first scan, and after one that repairs
// lost history.
func TestScanClean(t *testing.T) {
	check(t, allScanRules, "")
	check(t, rescanRules, "")
	lossy := rescanRules
	lossy.gaps = 1
	check(t, lossy, "")
	cancelled := rescanRules
	cancelled.cancels = true
	check(t, cancelled, "")
	rounds := lossy
	rounds.rounds = 1
	check(t, rounds, "")
}

// TestScanReverts takes a rule away.
func TestScanReverts(t *testing.T) {
	for _, c := range []struct {
		revert, broken string
		do             func(*scanRules)
	}{
		{"no marker below the end of the listing", scanWrongMarker, func(r *scanRules) { r.waitsTend = false }},
		{"C0 before the listing", scanDiverged, func(r *scanRules) { r.startFirst = false }},
		{"rows before events", scanDiverged, func(r *scanRules) { r.rowsFirst, r.rises = false, false }},
		{"the end of the listing is in the transaction of the rows", scanWrongMarker,
			func(r *scanRules) { r.storesTend = false }},
		{"fence", scanDiverged, func(r *scanRules) { r.fence = false }},
		{"rows have the time that may be promised", scanFalls, func(r *scanRules) { r.lowRows = false }},
	} {
		t.Run(c.revert, func(t *testing.T) {
			rules := allScanRules
			c.do(&rules)
			check(t, rules, c.broken)
		})
	}
}

// TestRescanReverts takes a rule away from a re-scan.
func TestRescanReverts(t *testing.T) {
	for _, c := range []struct {
		revert, broken string
		do             func(*scanRules)
	}{
		{"every lease has stopped before it lists", scanDiverged, func(r *scanRules) { r.acks = false }},
		{"nothing is delivered while it lists", scanDiverged, func(r *scanRules) { r.holds = false }},
		{"rows have the time of their page", scanLate, func(r *scanRules) { r.servedRows = false }},
		{"deletions", scanDiverged, func(r *scanRules) { r.sweeps, r.gaps = false, 1 }},
		{"fence", scanLate, func(r *scanRules) { r.fence, r.crashes = false, 1 }},
		{"a round is over when no lease has a page", scanDiverged,
			func(r *scanRules) { r.sameRound, r.rounds = false, 1 }},
		{"a lease passes what it has listed in the commit of the page", scanWrongMarker,
			func(r *scanRules) { r.positions, r.rounds, r.gaps = false, 1, 1 }},
		{"a cancelled one is over when no lease has a page", scanDiverged,
			func(r *scanRules) { r.cancels, r.drops = true, false }},
	} {
		t.Run(c.revert, func(t *testing.T) {
			rules := rescanRules
			c.do(&rules)
			check(t, rules, c.broken)
		})
	}
}
