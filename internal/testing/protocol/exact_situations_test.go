//go:build !race

package protocol

// exactSituations are walked with all rules, and without each.
func exactSituations() []situation {
	both := [4]uint8{0, 3, 3, 3}
	base := situation{segments: 2, perShard: 1, shards: both, keep: 1}
	var all []situation
	add := func(name string, change func(*situation)) {
		s := base
		s.name = name
		change(&s)
		all = append(all, s)
	}
	add("retention, ON_GAP=fail", func(s *situation) { s.retention, s.faults = true, 1 })
	add("retention, ON_GAP=continue", func(s *situation) { s.retention, s.onGap = true, skip })
	add("retention, ON_GAP=continue, a fault", func(s *situation) {
		s.retention, s.onGap, s.faults, s.large = true, skip, 1, true
	})
	add("retention of three segments, ON_GAP=fail", func(s *situation) { s.retention, s.segments = true, 3 })
	add("retention of three adjoining segments, ON_GAP=fail", func(s *situation) {
		s.retention, s.segments, s.adjoins = true, 3, true
	})
	add("retention of three adjoining segments, ON_GAP=continue", func(s *situation) {
		s.retention, s.segments, s.adjoins, s.onGap = true, 3, true, skip
	})
	add("retention of three segments, ON_GAP=continue", func(s *situation) {
		s.retention, s.segments, s.onGap = true, 3, skip
	})
	add("retention piece by piece, ON_GAP=fail", func(s *situation) {
		s.retention, s.pieces, s.faults = true, true, 1
	})
	add("retention piece by piece, ON_GAP=continue", func(s *situation) {
		s.retention, s.pieces, s.known, s.onGap = true, true, true, skip
	})
	add("retention of three segments piece by piece, ON_GAP=continue", func(s *situation) {
		s.retention, s.pieces, s.known, s.segments, s.onGap, s.adjoins = true, true, true, 3, skip, true
	})
	add("bundles or not, and retention piece by piece, ON_GAP=continue", func(s *situation) {
		s.bundles, s.either, s.segments, s.retention, s.pieces, s.known, s.onGap = true, true, 3, true, true, true, skip
	})
	add("one chunk goes, ON_GAP=continue", func(s *situation) { s.retention, s.chunkGoes, s.onGap = true, true, skip })
	add("one chunk goes, ON_GAP=fail", func(s *situation) { s.retention, s.chunkGoes = true, true })
	add("two events a shard, a fault", func(s *situation) { s.segments, s.perShard, s.faults = 1, 2, 1 })
	add("first start, the last segment becomes final", func(s *situation) {
		s.fresh, s.openLast, s.finalizes, s.apart = true, true, true, true
	})
	add("first start, one segment becomes final, a fault", func(s *situation) {
		s.fresh, s.openLast, s.finalizes, s.apart, s.segments, s.faults = true, true, true, true, 1, 1
	})
	add("several events in a transaction", func(s *situation) {
		s.several, s.apart, s.segments, s.perShard = true, true, 1, 2
	})
	add("several events in a transaction, a fault", func(s *situation) {
		s.several, s.apart, s.segments, s.perShard, s.faults, s.large = true, true, 1, 2, 1, true
	})
	add("two faults", func(s *situation) { s.segments, s.faults = 1, 2 })
	add("seek back", func(s *situation) { s.tool, s.target = seek, 1 })
	add("seek forward", func(s *situation) { s.tool, s.target = seek, 2 })
	add("seek back, one segment, a fault", func(s *situation) {
		s.tool, s.target, s.segments, s.faults = seek, 1, 1, 1
	})
	add("two seeks back, one segment", func(s *situation) { s.tool, s.target, s.segments, s.twice = seek, 1, 1, true })
	add("seek back, a fault", func(s *situation) { s.tool, s.target, s.faults, s.large = seek, 1, 1, true })
	add("seek forward, a fault", func(s *situation) { s.tool, s.target, s.faults, s.large = seek, 2, 1, true })
	add("seek forward and retention, ON_GAP=continue", func(s *situation) {
		s.tool, s.target, s.retention, s.onGap = seek, 2, true, skip
	})
	add("seek past damage", func(s *situation) { s.tool, s.target, s.damage, s.again = seek, 2, true, true })
	add("seek back, bundles", func(s *situation) { s.tool, s.target, s.bundles = seek, 1, true })
	add("reset", func(s *situation) { s.tool = reset })
	add("reset, one segment, a fault", func(s *situation) {
		s.tool, s.segments, s.faults, s.large = reset, 1, 1, true
	})
	add("bundles, a fault", func(s *situation) { s.bundles, s.segments, s.faults = true, 3, 1 })
	add("bundles and retention, ON_GAP=continue", func(s *situation) {
		s.bundles, s.segments, s.retention, s.onGap = true, 3, true, skip
	})
	add("bundles and retention, ON_GAP=continue, a fault", func(s *situation) {
		s.bundles, s.segments, s.retention, s.onGap, s.faults, s.large = true, 3, true, skip, 1, true
	})
	add("bundles or not, and retention, ON_GAP=continue", func(s *situation) {
		s.bundles, s.either, s.segments, s.retention, s.onGap = true, true, 3, true, skip
	})
	add("bundles or not, and retention, ON_GAP=fail", func(s *situation) {
		s.bundles, s.either, s.segments, s.retention = true, true, 3, true
	})
	add("growth of the state topic", func(s *situation) { s.grow, s.faults = true, 1 })
	add("--once, two instances", func(s *situation) { s.once, s.openLast, s.segments = true, true, 1 })
	add("--once, two instances, two segments", func(s *situation) { s.once, s.openLast = true, true })
	add("--once after a seek back", func(s *situation) {
		s.once, s.openLast, s.segments, s.rewound = true, true, 1, true
	})
	return all
}
