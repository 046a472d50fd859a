//go:build !race

package protocol

import "testing"

var allTornRules = tornRules{
	readBack: true, sideBySide: true, discard: true, rewrite: true, givesUp: true, takes: true, tidies: true, cuts: 2,
}

// With all rules nothing is lost or doubled when brokers leave out all ends of a commit.
func TestTornClean(t *testing.T) {
	for name, seek := range map[string]tornRules{
		"no seek": {}, "seek back": {seeks: true}, "seek past what the lease has": {seeks: true, to: 3},
	} {
		t.Run(name, func(t *testing.T) {
			rules := allTornRules
			rules.seeks, rules.to = seek.seeks, seek.to
			check(t, rules, "")
		})
	}
}

// TestTornReverts takes a rule away. The last two are no rules, but what brokers must not do beside.
func TestTornReverts(t *testing.T) {
	for _, c := range []struct {
		revert, broken string
		do             func(*tornRules)
	}{
		{"a commit is read back", tornLost, func(r *tornRules) { r.readBack = false }},
		{"side by side", tornLost, func(r *tornRules) { r.sideBySide = false }},
		{"discard", tornTwice, func(r *tornRules) { r.discard = false }},
		{"the cursor is written again", tornLost, func(r *tornRules) { r.rewrite = false }},
		{"an acquisition gives up", deadEnd, func(r *tornRules) { r.givesUp = false }},
		{"the keeper takes what it fences", deadEnd, func(r *tornRules) { r.seeks, r.takes = true, false }},
		{"the keeper discards", deadEnd, func(r *tornRules) { r.seeks, r.to, r.tidies = true, 3, false }},
		{"only some of the ends are left out", tornLost, func(r *tornRules) { r.partly = true }},
		{"the ends of an abort are left out", tornTwice, func(r *tornRules) { r.aborts = true }},
	} {
		t.Run(c.revert, func(t *testing.T) {
			rules := allTornRules
			c.do(&rules)
			check(t, rules, c.broken)
		})
	}
}
