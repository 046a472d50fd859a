//go:build !race

package protocol

import (
	"os"
	"testing"
)

func TestLeastClean(t *testing.T) {
	for _, sit := range leastSituations() {
		if sit.large && os.Getenv("PROTOCOL_FULL") == "" {
			continue
		}
		t.Run(sit.name, func(t *testing.T) {
			t.Parallel()
			check(t, &least{allLeastRules(), sit}, "")
		})
	}
}

// TestLeastToday finds, in at_least_once before these rules, what was wrong with it. It did not wait for
// answers either, but that takes many more states and is found below.
func TestLeastToday(t *testing.T) {
	for _, c := range []struct{ situation, broken string }{
		{"bundles, two crashes", leastNames[againBelow]},
		{"bundles, a refused record", leastNames[firstBelow]},
		{"a refused record", leastNames[firstOrder]},
		{"an expired session", leastNames[falls]},
		{"an expired session, two events", staleKey},
		{"a late frontier", deadEnd},
	} {
		t.Run(c.situation+": "+c.broken, func(t *testing.T) {
			t.Parallel()
			check(t, &least{leastRules{awaits: true}, leastSituationOf(t, c.situation)}, c.broken)
		})
	}
}

// TestLeastReverts takes one rule away, and finds what that breaks.
func TestLeastReverts(t *testing.T) {
	for _, c := range []struct {
		revert            string
		do                func(*leastRules)
		situation, broken string
	}{
		{"fail fast", func(r *leastRules) { r.failFast = false }, "a refused record", leastNames[firstOrder]},
		{"intent", func(r *leastRules) { r.intent = false }, "bundles, two crashes", leastNames[againBelow]},
		{"intent", func(r *leastRules) { r.intent = false }, "bundles, seek", leastNames[falls]},
		{"last marker only", func(r *leastRules) { r.lastOnly = false }, "bundles, two crashes", leastNames[falls]},
		{"answers", func(r *leastRules) { r.awaits = false }, "bundles, seek", staleKey},
		{"age", func(r *leastRules) { r.age = false }, "bundles, two expired sessions", leastNames[falls]},
		{"last owner", func(r *leastRules) { r.byOwner, r.repair = false, false },
			"bundles, any late document", staleKey},
		{"repair", func(r *leastRules) { r.repair = false }, "bundles, a slow clock", staleKey},
		{"enter", func(r *leastRules) { r.enter = false }, "a segment, then a bundle, seek", staleKey},
		{"intent", func(r *leastRules) { r.intent = false }, "as the program: bundles, a crash", leastNames[againBelow]},
		{"all owners", func(r *leastRules) { r.asks = false }, "a segment, then a bundle, seek", staleKey},
		{"R1", func(r *leastRules) { r.known = false }, "a segment, then a bundle, seek", staleKey},
		{"report", func(r *leastRules) { r.counts = false }, "seek, an instance takes lease 0 back", leastNames[notMoved]},
		{"compaction lag", func(r *leastRules) { r.lagged = false },
			"bundles, a late frontier, compaction", leastNames[falls]},
	} {
		t.Run(c.revert+": "+c.broken, func(t *testing.T) {
			t.Parallel()
			rules := allLeastRules()
			c.do(&rules)
			check(t, &least{rules, leastSituationOf(t, c.situation)}, c.broken)
		})
	}
}

func leastSituationOf(t *testing.T, name string) leastSituation {
	for _, s := range leastSituations() {
		if s.name == name {
			return s
		}
	}
	t.Fatalf("no situation %q", name)
	return leastSituation{}
}
