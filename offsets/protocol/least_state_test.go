package protocol

// Phases of a worker without transactions. In all but idle, viewing, at rest and settling it has one request on the wire, or
// is about to send one.
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
	log      [2][24]entry
	n        [2]uint8
	group    [2]uint8 // by lease: 1 + instance
	acqs     [2]uint8 // ghost: acquisitions so far
	read     [2][2]uint8
	w        [2][2]leastWorker
	orphan   [2]request // sent by a producer that is closed; may arrive or not
	faults   uint8
	tool     uint8
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
	logFull // of the model
)

var leastNames = [...]string{
	"",
	firstOrder: "I4 first deliveries in order",
	firstBelow: "I6 no first delivery below a marker",
	againBelow: "I6 nothing comes again below a marker",
	falls:      "I6 markers never fall",
	passedOver: "I8 nothing is skipped silently",
	logFull:    "the log of the model is full",
}

// anyRecord is every kind of documents.
const anyRecord = 4

const staleKey = "every key ends on its newest record"

// leastRules are the rules of DELIVERY=at_least_once.
type leastRules struct {
	failFast bool // after a refused record the producer writes nothing more
	intent   bool // the frontier is written before its marker, and says that it is owed
	lastOnly bool // a bundle writes one marker, behind all of it
	age      bool // nothing is sent when the lease may have expired
	byOwner  bool // a document counts only if the last owner record is its writer's
	repair   bool // the keeper moves back behind a document that does not count
	enter    bool // a move waits until every lease with an owner has entered its epoch
	asks     bool // before that, the keeper asks for the ends of all partitions, to know of every owner
	lagged   bool // the state topic is compacted only after what does not count is repaired: min.compaction.lag.ms
	known    bool // R1: after its own record, an owner waits for partition 0's high watermark
}

func allLeastRules() leastRules {
	return leastRules{true, true, true, true, true, true, true, true, true, true}
}

// leastSituation is what the protocol has to cope with.
type leastSituation struct {
	name      string
	segments  uint8
	perShard  uint8
	oneKey    bool // only lease 1 has a shard
	bundles   bool
	named     bool  // but the first segment is named, as if it were too large for one
	crashes   uint8 // crashes, refused records and leases that another takes: together
	refused   bool  // records may be refused
	takeover  bool  // the session of an instance expires, and it does not know
	late      uint8 // documents of this kind that were sent may arrive after that
	slowClock bool  // an instance that sleeps does not notice it, but ends what it has begun
	seeks     bool  // an operator moves the bridge back to segment 1
	compacts  bool  // all stop, the state topic is compacted, and all start
	large     bool
}

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

func (x *least) settled(s *leastState) bool {
	k := x.fold(s, s.n)
	return k.f.completed == x.segments && !k.f.moving && k.back == 0 && s.marker == x.segments && s.newest == x.upTo(x.segments)
}

func (x *least) start() leastState {
	s := leastState{group: [2]uint8{1, 2}, faults: x.crashes}
	f := doc{kind: frontierRecord, current: 1}
	if x.bundles && !x.named {
		f.current = 0
	}
	s.log[0][0], s.n[0] = f.pack(), 1
	return s
}

// arrive is a request that reaches its broker.
func (x *least) arrive(s *leastState, p int, r request) {
	fail := func(what uint8) {
		if s.breaking == 0 {
			s.breaking = what
		}
	}
	switch r.kind {
	case eventRequest:
		e := (r.n-1)*x.perShard + r.pos + 1
		switch first := &s.first[r.key]; {
		case e > *first+1:
			fail(firstOrder)
		case e == *first+1:
			if s.marker >= r.n {
				fail(firstBelow)
			}
			*first = e
		case s.marker >= r.n && !x.seeks && x.late == 0 && !x.slowClock:
			fail(againBelow)
		}
		s.newest[r.key] = e
	case markerRequest:
		if r.n < s.marker {
			fail(falls)
		}
		s.marker = r.n
	case docRequest:
		if int(s.n[p]) == len(s.log[p]) {
			fail(logFull)
			return
		}
		s.log[p][s.n[p]] = r.doc
		s.n[p]++
		if d := r.doc.doc(); d.kind == frontierRecord && !d.moving {
			for key, n := range x.upTo(d.completed) {
				if s.first[key] < n {
					fail(passedOver)
				}
			}
		}
	}
}
