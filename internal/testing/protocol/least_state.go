package protocol

// Phases of a worker without transactions. In owning, data, storing, taking and marking it has one request on the wire,
// or is about to send one.
const (
	off      = iota
	owning   // writes its owner record
	viewing  // waits for its view
	atRest   // holds the lease, as far as it knows
	data     // writes events of its lease
	storing  // writes a document
	settling // waits until its view has read that document
	asking   // waits until its view has read all partitions to the ends that it asked for
	taking   // the keeper writes the events of a bundle
	marking  // the keeper writes a marker
)

// Requests.
const (
	eventRequest = 1 + iota
	markerRequest
	docRequest
)

// request is what a producer sends. Without a fence, nothing but the network stops it.
type request struct {
	kind uint8
	key  uint8 // of an event
	n    uint8 // its segment, or what a marker says
	pos  uint8
	doc  entry
}

type leastWorker struct {
	phase   uint8
	acq     uint8
	n, last uint8 // segment, the last one of a bundle
	at      uint8 // the next event of it
	until   [2]uint8
	written uint8 // the marker that this owner has written
	asked   uint8 // the epoch for which this keeper has asked for the ends of all partitions
	epoch   uint8 // that the work was begun under
	expired bool  // the session that it was begun in is over
	failed  bool  // a record was refused, and the producer went on
	onWire  bool
	req     request // the one on the wire, or to be sent again
}

// leastState is a state of the whole system without transactions.
type leastState struct {
	log      [2][40]entry
	n        [2]uint8
	group    [2]uint8 // by lease: 1 + instance
	acqs     [2]uint8 // ghost: acquisitions so far
	read     [2][2]uint8
	w        [2][2]leastWorker
	orphan   [2]request // sent by a producer that is closed; may arrive or not
	faults   uint8
	tool     uint8
	final    bool     // the last segment is finalized, though it was not at first
	first    [2]uint8 // ghost, by key: events delivered, in their order
	newest   [2]uint8 // ghost, by key: the event of the last record
	marker   uint8    // ghost: the highest marker
	breaking uint8
}

// Invariants without transactions.
const (
	firstOrder = 1 + iota
	firstBelow
	againBelow
	falls
	passedOver
	notMoved
	logFull // of the model
)

var leastNames = [...]string{
	"",
	firstOrder: "I4 first deliveries in order",
	firstBelow: "I6 no first delivery below a marker",
	againBelow: "I6 nothing comes again below a marker",
	falls:      "I6 markers never fall",
	passedOver: "I8 nothing is skipped silently",
	notMoved:   "I11 a move that is reported counts",
	logFull:    "the log of the model is full",
}

// anyRecord is every kind of documents.
const anyRecord = 4

const staleKey = "every key ends on its newest record"

// least is the protocol of DELIVERY=at_least_once in a situation.
type least struct {
	leastRules
	leastSituation
}

func (x *least) broken(s *leastState) string { return leastNames[s.breaking] }

func (x *least) stuck(s *leastState) string {
	if k := x.fold(s, s.n); k.f.completed == x.segments && s.first == x.upTo(x.segments) {
		return staleKey
	}
	return deadEnd
}

// upTo returns the events of each key up to segment n. Key p is lease p's.
func (x *least) upTo(n uint8) [2]uint8 {
	if x.oneKey {
		return [2]uint8{0, n * x.perShard}
	}
	return [2]uint8{n * x.perShard, n * x.perShard}
}

func (x *least) owns(p int) bool { return p == 1 || !x.oneKey }

// isOpen reports whether segment n is not finalized.
func (x *least) isOpen(s *leastState, n uint8) bool {
	return x.finalizes && n == x.segments && !s.final
}

func (x *least) settled(s *leastState) bool {
	k := x.fold(s, s.n)
	if k.f.completed != x.segments || k.f.moving || k.back != 0 {
		return false
	}
	return s.marker == x.segments && s.newest == x.upTo(x.segments)
}

func (x *least) start() leastState {
	s := leastState{group: [2]uint8{1, 2}, faults: x.crashes}
	if x.fresh {
		return s
	}
	f := doc{kind: frontierRecord, current: 1}
	if x.bundles && !x.named {
		f.current = 0
	}
	s.log[0][0], s.n[0] = f.pack(), 1
	return s
}
