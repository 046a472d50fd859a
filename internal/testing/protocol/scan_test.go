//go:build !race

package protocol

import "testing"

var (
	allScanRules = scanRules{
		startFirst: true, rowsFirst: true, waitsTend: true, storesTend: true, fence: true, lowRows: true,
		rises: true, crashes: 1, acks: true, holds: true, servedRows: true, sweeps: true, drops: true,
		sameRound: true, positions: true,
		lister: [scanBlobs]uint8{0, 1}, deliverer: [scanBlobs]uint8{1, 0}, sweeper: [scanBlobs]uint8{0, 1}, changes: 3,
	}
	rescanRules = func() scanRules { r := allScanRules; r.rescan, r.crashes, r.sweeps = true, 0, false; return r }()
	readsRules  = func() scanRules {
		r := rescanRules
		r.sweeps, r.gaps, r.reads, r.rereads, r.sweeper, r.rounds = true, 1, true, true, [scanBlobs]uint8{0, 0}, 1
		r.crashes, r.changes = 2, 2
		return r
	}()
)

// With all rules the topic becomes the account, and markers are right: after a first scan, and after one that repairs
// lost history.
func TestScanClean(t *testing.T) {
	for _, c := range []struct {
		name  string
		rules scanRules
		do    func(*scanRules)
	}{
		{"first scan", allScanRules, func(*scanRules) {}},
		{"first scan, C0 and markers of an earlier time", allScanRules, func(r *scanRules) { r.lags, r.crashes = true, 0 }},
		{"another scan", rescanRules, func(*scanRules) {}},
		{"it is cancelled", rescanRules, func(r *scanRules) { r.cancels = true }},
		{"in two rounds", rescanRules, func(r *scanRules) { r.rounds = 1 }},
		{"with a sweep behind a loss", rescanRules, func(r *scanRules) { r.sweeps, r.gaps = true, 1 }},
		{"the same, in three rounds", rescanRules, func(r *scanRules) {
			r.sweeps, r.gaps, r.rounds, r.changes = true, 1, 1, 2
		}},
		{"the same, and the lease that sweeps has other owners", readsRules, func(*scanRules) {}},
		{"the same, cancelled", rescanRules, func(r *scanRules) {
			r.sweeps, r.cancels, r.changes = true, true, 2
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			rules := c.rules
			c.do(&rules)
			check(t, rules, "")
		})
	}
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
		{"deletions", scanDiverged, func(r *scanRules) { r.gaps = 1 }},
		{"an owner reads behind its fence which keys live", scanTwice,
			func(r *scanRules) { *r = readsRules; r.rereads = false }},
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
