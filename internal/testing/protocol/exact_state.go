package protocol

// Phases of a worker.
const (
	idle      = iota
	acquiring // has fenced, waits for its view
	ready     // holds the lease, as far as it knows
	reading   // has read the manifest of its segment
	holding   // has the next event in memory
	sent      // its transaction is with the broker
	committed // the answer is on its way
	fencedAll // the keeper has fenced the other leases
	listing   // the keeper is about to list the segments of a bundle
	bundling  // the keeper has listed the segments of a bundle
	hanging   // waits for a flush that cannot succeed
)

// Ends of an instance.
const (
	alive = iota
	lost  // "history is lost", exit 1
	done  // --once: everything is delivered, exit 0
	wrong // the settings do not fit, exit 1
)

// worker is what an instance knows of one of its leases.
type worker struct {
	phase   uint8
	segment uint8    // being read
	last    uint8    // of a bundle
	ahead   uint8    // the segments up to it were there behind the bundle, which was not written yet; 0: none
	cur     record   // the cursor in memory
	until   [2]uint8 // acquiring: how far the view must be in partition 0, and in the lease's own one
	missing uint8    // the segment that was found missing before this acquisition
	behind  bool     // its event is committed without a cursor: see exactRules.cursorApart
	drained uint8    // the open segment that was read to its end
}

type instance struct {
	end    uint8
	leases uint8 // partitions of the state topic when it started
	read   [2]uint8
	until  uint8 // end of partition 0 when it started
	w      [2]worker
}

// txn is an open transaction of a lease, and what stands around its place in the data topic: offsets are given when
// records are produced, so an event of a transaction that commits late stands before others that committed earlier.
type txn struct {
	open    bool
	ending  bool   // its end was asked for: the broker commits it at any moment
	events  uint16 // by exact.event
	markers uint8  // bit n: the marker after segment n, which stands behind the events of segment n
	sought  bool   // the marker of a seek, before everything else
	old     bool   // a committed marker of a seek stands behind it
	low     uint8  // committed before it: the highest segment of an event
	marked  uint8  // committed before it: the highest marker
	high    uint8  // committed behind it: the lowest segment of an event
	rec     record
}

// exactState is a state of the whole system.
type exactState struct {
	removed  uint8 // retention has removed the manifests of the segments up to this one
	chunks   uint8 // and these chunks: see chunkBit
	final    bool  // the last segment is finalized, though it was not at first
	parts    uint8 // partitions of the state topic
	log      [2][14]record
	n        [2]uint8
	holder   [2]uint8 // by transactional id: 0 nobody, 1 + instance, byTool, byFence
	txn      [2]txn
	first    uint8 // of two open transactions: the one whose records come first
	group    [2]uint8
	joined   uint8 // bit: instance is a member of the group
	in       [2]instance
	tool     uint8
	faults   uint8
	events   uint16 // ghost: delivered since the last marker of a seek
	highest  uint8  // ghost: segment of an event, since then
	marker   uint8  // ghost: since then
	from     uint8  // ghost: nothing before it is owed
	breaking uint8
}

// Holders of a transactional id that are no instance.
const (
	byTool  = 3
	byFence = 4 // by the keeper, which fences without using the id
)

// Invariants, as in docs/delivery.md. Every walk checks them all.
const (
	ok = iota
	twice
	order
	below
	skipped
	staleLoss
	falseLoss
	falseEnd
)

var exactNames = [...]string{
	ok:        "",
	twice:     "I1 no event twice",
	order:     "I4 order and barrier",
	below:     "I6 nothing below a marker",
	skipped:   "I8 nothing is skipped silently",
	staleLoss: "I10 no decision by a stale frontier",
	falseLoss: "every promise kept: history is lost only if it is",
	falseEnd:  "every promise kept: --once ends when all is delivered",
}

// exact is the protocol of DELIVERY=exactly_once in a situation.
type exact struct {
	exactRules
	situation
}

func (x *exact) broken(s *exactState) string { return exactNames[s.breaking] }
func (x *exact) stuck(*exactState) string    { return deadEnd }

func (x *exact) start() exactState {
	s := exactState{faults: x.faults, parts: 2, group: [2]uint8{1, 2}, joined: 3, from: 1}
	if x.grow {
		s.parts, s.group, s.joined = 1, [2]uint8{1, 1}, 1
	}
	if x.once {
		s.group, s.joined = [2]uint8{1, 1}, 1
	}
	put := func(p int, r record) {
		s.log[p][s.n[p]] = r
		s.n[p]++
	}
	if x.fresh { // nothing was delivered, as after a reset
		put(0, frontier{reset: true, grown: true}.pack())
	} else {
		put(0, frontier{current: 1, grown: !x.grow}.pack())
	}
	if x.rewound { // everything was delivered, and then an operator moved the bridge back
		put(0, cursor{segment: 1, pos: [2]uint8{x.perShard, 0}}.pack())
		put(0, frontier{epoch: 1, moving: true, sought: true, grown: true}.pack())
		put(1, cursor{segment: 1, pos: [2]uint8{0, x.perShard}}.pack())
	}
	for i := range s.in {
		s.in[i] = instance{leases: s.parts, until: s.n[0]}
	}
	return s
}

// settled: the last segment is complete or, if it is open, delivered; or an instance ended with a true error.
func (x *exact) settled(s *exactState) bool {
	ended := true
	for i := range s.in {
		if s.in[i].end == lost || s.in[i].end == wrong {
			return true
		}
		ended = ended && (s.in[i].end == done || s.joined>>i&1 == 0)
	}
	if x.once {
		return ended
	}
	f := s.frontier(s.n[0])
	if x.openLast && !x.finalizes {
		return f.current == x.segments && s.events&x.of(x.segments) == x.of(x.segments)
	}
	return f.completed == x.segments && f.current == 0 && !f.moving && !f.reset
}

// event is the bit of an event.
func (x *exact) event(n, shard, pos uint8) uint16 { return 1 << (((n-1)*2+shard)*x.perShard + pos) }

// of returns all events of segment n.
func (x *exact) of(n uint8) (events uint16) {
	for shard := range uint8(2) {
		for pos := range x.in(n, shard) {
			events |= x.event(n, shard, pos)
		}
	}
	return events
}

// in returns the number of events of a shard of segment n.
func (x *exact) in(n, shard uint8) uint8 {
	if x.shards[n]>>shard&1 == 0 {
		return 0
	}
	return x.perShard
}

// chunkBit is the bit of the chunk of a shard of segment n.
func chunkBit(n, shard uint8) uint8 { return 1 << ((n-1)*2 + shard) }

// lacks reports whether retention has removed the chunk of a shard of segment n.
func (s *exactState) lacks(n, shard uint8) bool { return s.chunks&chunkBit(n, shard) != 0 }

// owns reports whether lease p of that many has something in segment n.
func (x *exact) owns(leases uint8, p int, n uint8) bool {
	for shard := range uint8(2) {
		if shard%leases == uint8(p) && x.in(n, shard) > 0 {
			return true
		}
	}
	return false
}

// unread returns the shard of lease p that the cursor has not read to its end in segment n.
func (x *exact) unread(c cursor, leases uint8, p int, n uint8) (shard uint8, more bool) {
	for shard := range uint8(2) {
		if shard%leases == uint8(p) && c.at(n, shard) < x.in(n, shard) {
			return shard, true
		}
	}
	return 0, false
}

// after returns the oldest segment there is after n; 0 if none.
func (x *exact) after(s *exactState, n uint8) uint8 {
	if next := max(n, s.removed) + 1; next <= x.segments {
		return next
	}
	return 0
}

// frontier is the last one in the first n records of partition 0.
func (s *exactState) frontier(n uint8) frontier {
	for k := int(n) - 1; k >= 0; k-- {
		if s.log[0][k].isFrontier() {
			return s.log[0][k].frontier()
		}
	}
	return frontier{}
}

// cursor is that of lease p in a view. One of an earlier epoch than the view's frontier has no position.
func (x *exact) cursor(s *exactState, read [2]uint8, p int) cursor {
	var c cursor
	for k := int(read[p]) - 1; k >= 0; k-- {
		if r := s.log[p][k]; !r.isFrontier() {
			c = r.cursor()
			break
		}
	}
	if epoch := s.frontier(read[0]).epoch; c.epoch < epoch && !x.keepCursors {
		return cursor{epoch: epoch}
	}
	return c
}
