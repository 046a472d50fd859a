package protocol

import (
	"os"
	"testing"
)

func leastSituations() []leastSituation {
	base := leastSituation{segments: 2, perShard: 1, oneKey: true, crashes: 1}
	var all []leastSituation
	add := func(name string, change func(*leastSituation)) {
		s := base
		s.name = name
		change(&s)
		all = append(all, s)
	}
	add("two crashes", func(s *leastSituation) { s.crashes = 2 })
	add("a crash, two keys", func(s *leastSituation) { s.oneKey = false })
	add("bundles, two crashes", func(s *leastSituation) { s.bundles, s.segments, s.oneKey, s.crashes = true, 3, false, 2 })
	add("a refused record", func(s *leastSituation) { s.refused, s.segments, s.perShard, s.oneKey = true, 1, 2, false })
	add("bundles, a refused record", func(s *leastSituation) { s.refused, s.bundles, s.oneKey = true, true, false })
	add("an expired session", func(s *leastSituation) { s.takeover = true })
	add("an expired session, two events", func(s *leastSituation) { s.takeover, s.segments, s.perShard = true, 1, 2 })
	add("two expired sessions, two events", func(s *leastSituation) {
		s.takeover, s.segments, s.perShard, s.crashes, s.large = true, 1, 2, 2, true
	})
	add("bundles, two expired sessions", func(s *leastSituation) { s.takeover, s.bundles, s.crashes = true, true, 2 })
	add("a late cursor", func(s *leastSituation) { s.takeover, s.late = true, cursorRecord })
	add("a late frontier", func(s *leastSituation) { s.takeover, s.late = true, frontierRecord })
	add("a late owner record", func(s *leastSituation) { s.takeover, s.late, s.segments = true, ownerRecord, 1 })
	add("any late document", func(s *leastSituation) { s.takeover, s.late, s.large = true, anyRecord, true })
	add("bundles, any late document", func(s *leastSituation) {
		s.takeover, s.late, s.bundles, s.segments = true, anyRecord, true, 3
	})
	add("bundles, a late frontier, compaction", func(s *leastSituation) {
		s.late, s.bundles, s.compacts, s.crashes, s.large = frontierRecord, true, true, 2, true
	})
	add("a slow clock", func(s *leastSituation) {
		s.takeover, s.slowClock, s.segments, s.perShard, s.large = true, true, 1, 2, true
	})
	add("bundles, a slow clock", func(s *leastSituation) { s.takeover, s.slowClock, s.bundles = true, true, true })
	add("seek", func(s *leastSituation) { s.seeks, s.crashes = true, 0 })
	add("bundles, seek", func(s *leastSituation) { s.seeks, s.bundles, s.oneKey, s.crashes = true, true, false, 0 })
	add("a segment, then a bundle, seek", func(s *leastSituation) { s.seeks, s.bundles, s.named, s.crashes = true, true, true, 0 })
	add("a segment, then a bundle, seek, a crash", func(s *leastSituation) {
		s.seeks, s.bundles, s.named, s.large = true, true, true, true
	})
	return all
}

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

// TestLeastToday finds, in at_least_once before these rules, what was wrong with it.
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
			check(t, &least{leastRules{}, leastSituationOf(t, c.situation)}, c.broken)
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
		{"age", func(r *leastRules) { r.age = false }, "bundles, two expired sessions", leastNames[falls]},
		{"last owner", func(r *leastRules) { r.byOwner, r.repair = false, false }, "bundles, any late document", staleKey},
		{"repair", func(r *leastRules) { r.repair = false }, "bundles, a slow clock", staleKey},
		{"enter", func(r *leastRules) { r.enter = false }, "a segment, then a bundle, seek", staleKey},
		{"all owners", func(r *leastRules) { r.asks = false }, "a segment, then a bundle, seek", staleKey},
		{"R1", func(r *leastRules) { r.known = false }, "a segment, then a bundle, seek", staleKey},
		{"compaction lag", func(r *leastRules) { r.lagged = false }, "bundles, a late frontier, compaction", leastNames[falls]},
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
