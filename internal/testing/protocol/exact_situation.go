package protocol

// onGap is the setting of that name; skip is its value "continue".
type onGap uint8

const (
	fail onGap = iota
	skip
)

// Verbs.
const (
	seek  = 1
	reset = 2
)

// situation is what the protocol has to cope with.
type situation struct {
	name      string
	segments  uint8
	perShard  uint8    // events of a shard
	shards    [4]uint8 // by segment: bit of each shard in it
	faults    uint8    // crashes, unknown outcomes, transactions that time out, leases that another takes: together
	openLast  bool     // the last segment is not finalized
	finalizes bool     // but it will be
	fresh     bool     // the first start: there is no frontier
	apart     bool     // that a lease is done may be a transaction of its own
	several   bool     // events may share a transaction
	onGap     onGap
	retention bool  // removes segments
	keep      uint8 // but not the last ones
	adjoins   bool  // each segment begins where the one before it ends
	pieces    bool  // it removes the manifest of a segment first, and then chunk by chunk
	known     bool  // a manifest that is gone may be known from before: as the program does
	chunkGoes bool  // retention may remove just one chunk
	damage    bool  // the event of shard 1 in segment 1 cannot be read
	bundles   bool  // segments are small
	either    bool  // but one may be delivered by itself, and the look for a bundle may be early: as the program does
	tool      uint8 // a verb runs at some moment
	target    uint8 // of a seek
	twice     bool  // a verb that is done is run once more
	again     bool  // a verb that failed is run again
	rewound   bool  // a seek to segment 1 was committed before the start
	grow      bool  // one partition of the state topic becomes two
	once      bool  // --once, one instance at first
	large     bool  // only with PROTOCOL_FULL=1
}
