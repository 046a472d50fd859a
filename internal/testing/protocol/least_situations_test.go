//go:build !race

package protocol

// leastSituations are walked with all rules, and without each.
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
	add("bundles, two crashes", func(s *leastSituation) {
		s.bundles, s.segments, s.oneKey, s.crashes = true, 3, false, 2
	})
	add("a refused record", func(s *leastSituation) {
		s.refused, s.segments, s.perShard, s.oneKey = true, 1, 2, false
	})
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
		s.late, s.bundles, s.compacts, s.crashes = frontierRecord, true, true, 2
	})
	add("bundles, a slow clock", func(s *leastSituation) { s.takeover, s.slowClock, s.bundles = true, true, true })
	add("seek", func(s *leastSituation) { s.seeks, s.crashes = true, 0 })
	add("seek, an instance takes lease 0 back", func(s *leastSituation) { s.seeks, s.raced, s.crashes = true, true, 0 })
	add("bundles, seek", func(s *leastSituation) { s.seeks, s.bundles, s.oneKey, s.crashes = true, true, false, 0 })
	add("a segment, then a bundle, seek", func(s *leastSituation) {
		s.seeks, s.bundles, s.named, s.crashes = true, true, true, 0
	})
	add("as the program: first start, the last segment becomes final, a crash", func(s *leastSituation) {
		s.asProgram, s.fresh, s.finalizes, s.oneKey, s.segments = true, true, true, false, 1
	})
	add("as the program: the last segment becomes final, an expired session", func(s *leastSituation) {
		s.asProgram, s.finalizes, s.takeover = true, true, true
	})
	add("as the program: bundles, a crash", func(s *leastSituation) { s.asProgram, s.bundles = true, true })
	add("as the program: bundles, two crashes", func(s *leastSituation) {
		s.asProgram, s.bundles, s.crashes, s.large = true, true, 2, true
	})
	add("as the program: bundles, a late frontier", func(s *leastSituation) {
		s.asProgram, s.bundles, s.takeover, s.late, s.segments, s.large = true, true, true, frontierRecord, 1, true
	})
	add("as the program: seek", func(s *leastSituation) { s.asProgram, s.seeks, s.crashes = true, true, 0 })
	add("as the program: a segment, then a bundle, seek", func(s *leastSituation) {
		s.asProgram, s.seeks, s.bundles, s.named, s.crashes, s.large = true, true, true, true, 0, true
	})
	add("as the program: seek, an instance takes lease 0 back", func(s *leastSituation) {
		s.asProgram, s.seeks, s.raced, s.crashes, s.large = true, true, true, 0, true
	})
	add("a segment, then a bundle, seek, a crash", func(s *leastSituation) {
		s.seeks, s.bundles, s.named, s.large = true, true, true, true
	})
	return all
}
