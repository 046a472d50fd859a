package protocol

import (
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"strings"
)

// Segments is how many segments a trace has, each with one block of events in each of its two shards.
const Segments = 3

// Trace is what the program did in a run with two leases and exactly once, in the order in which its brokers handled
// fences and commits.
type Trace struct {
	Skips   bool // ON_GAP=continue
	Bundles bool // segments may be small enough for one
	Events  []Event
}

// Event is one that others can see.
type Event struct {
	Kind     EventKind
	Instance string // no two of a trace have one name, also not one after the other
	Lease    int
	Nobody   bool     // of Fences: the keeper fences another lease, for nobody
	Seen     [2]int64 // of Acquired: where the view stood in the partition of each lease
	Segment  uint8    // of Removed: the manifests of all up to it are gone

	// Of Commits; Acquired has the cursor.
	Offset    int64 // of its last document
	Document  Document
	Shards    []Block // whose events are in it; of Removed: whose chunks are gone now
	Markers   int     // on each partition
	NoMarkers bool    // there is no topic yet, or no promise
}

// Block is the events of a shard of a segment.
type Block struct{ Segment, Shard uint8 }

// EventKind is what happens.
type EventKind string

// The kinds of events.
const (
	Starts    EventKind = "starts"
	Fences    EventKind = "fences"
	Acquired  EventKind = "has acquired"
	Commits   EventKind = "commits"
	Ends      EventKind = "ends, because history is lost"
	Verb      EventKind = "fences, as a verb"
	Moves     EventKind = "commits, as a verb"
	Removed   EventKind = "segment removed"
	Finalized EventKind = "last segment finalized"
)

func (e Event) String() string {
	text := fmt.Sprintf("%s %s lease %d", e.Instance, e.Kind, e.Lease)
	switch e.Kind {
	case Removed:
		return fmt.Sprintf("manifests are gone up to segment %d, and the chunks of %v", e.Segment, e.Shards)
	case Commits, Acquired, Moves:
		text += ": " + e.Document.pack().what().String()
	}
	if len(e.Shards) > 0 || e.Markers > 0 {
		text += fmt.Sprintf(", with %v, and %d markers", e.Shards, e.Markers)
	}
	return text
}

// Document is a frontier or cursor of the state topic.
type Document struct {
	IsFrontier                  bool
	Epoch                       uint8
	Completed, Current          uint8 // of a frontier: segments from 1 on; 0 is none
	Moving, Sought, Told, Reset bool
	Loses                       bool  // it records lost history that the frontier before it did not
	Segment                     uint8 // of a cursor
	Read                        [2]bool
	Done, Gap                   bool
}

// pack returns the model's record, without the gaps of a frontier.
func (d Document) pack() record {
	if d.IsFrontier {
		return plain(frontier{
			epoch: d.Epoch, completed: d.Completed, current: d.Current, moving: d.Moving, sought: d.Sought,
			told: d.Told, reset: d.Reset, grown: true,
		}.pack())
	}
	c := cursor{epoch: d.Epoch, segment: d.Segment, done: d.Done, gap: d.Gap}
	for shard, read := range d.Read {
		c.pos[shard] = uint8(bit(read, 0))
	}
	return c.pack()
}

// follower keeps, for each worker, the states that fit what was seen so far. Workers share nothing but what they commit
// and fence, which is seen. So each is followed apart, and a trace costs milliseconds. In its states a worker is of
// instance A, and all other instances are B. The two workers of an instance have one view in the program, and one each
// here: the follower allows more than the program can do, never less.
type follower struct {
	possible[exactState]
	x exact
}

// other is the holder of a lease that another instance has.
const other = 2

// Follow returns an error with the first event that the protocol does not allow, or if the feed is not delivered in the
// end. It takes the steps of the exact model, the ones that the explorer walks through; see doc.go.
func Follow(t Trace) error {
	x := exact{allExactRules(), situation{
		segments: Segments, perShard: 1, shards: [4]uint8{0, 3, 3, 3}, openLast: true, fresh: true, apart: true,
		adjoins: true, known: true,
		faults: 1, // as many as there are: each is given back
	}}
	if t.Skips {
		x.onGap = skip
	}
	x.bundles, x.either = t.Bundles, t.Bundles
	f := follower{possible[exactState]{
		world: x.start(), states: map[follows]map[exactState]bool{}, steps: x.followed, forget: forget,
	}, x}
	f.at[0] = []int64{-1} // the record that every trace begins with
	f.world.in, f.world.joined, f.world.group = [2]instance{}, 1, [2]uint8{1, 1}
	lossy := false
	for k, e := range t.Events {
		if err := f.follow(e); err != nil {
			return fmt.Errorf("event %d: %s: %w", k, e, err)
		}
		lossy = lossy || e.Kind == Ends
	}
	if last := f.world.frontier(f.world.n[0]); last.completed != Segments && !lossy {
		return fmt.Errorf("the trace ends, and the last frontier is %s", last.pack().what())
	}
	return nil
}

func (f *follower) follow(e Event) error {
	at := follows{e.Instance, e.Lease}
	switch e.Kind {
	case Starts:
		for p := range 2 {
			s := f.world
			s.in[0] = instance{leases: 2, until: s.n[0]}
			f.begin(follows{e.Instance, p}, s)
		}
	case Removed:
		for _, of := range f.order {
			f.reachable(of) // what was read before may be committed later
		}
		f.all(func(_ follows, s *exactState) {
			s.removed = e.Segment
			for _, b := range e.Shards {
				s.chunks |= chunkBit(b.Segment, b.Shard)
			}
		})
	case Finalized:
		f.all(func(_ follows, s *exactState) { s.final = true })
	case Verb:
		f.all(func(_ follows, s *exactState) { s.fence(e.Lease, byTool) })
	case Moves:
		return f.moves(e)
	case Fences:
		return f.fences(e, at)
	case Acquired:
		return f.take(at, func(was, is *exactState) bool {
			w := is.in[0].w[at.lease]
			return was.in[0].w[at.lease].phase == acquiring && w.phase == ready &&
				w.cur == e.Document.pack() && f.hasRead(is.in[0].read, e.Seen)
		})
	case Commits:
		return f.commits(e, at)
	case Ends:
		for p := range 2 {
			err := f.take(follows{e.Instance, p}, func(_, is *exactState) bool { return is.in[0].end == lost })
			if err == nil {
				return nil
			}
		}
		return fmt.Errorf("the protocol has not found it lost twice")
	}
	return nil
}

// fences follows InitProducerID, of the owner or of the keeper.
func (f *follower) fences(e Event, at follows) error {
	by, phase := uint8(1), uint8(acquiring)
	if e.Nobody {
		at.lease, by, phase = 0, byFence, fencedAll
	}
	err := f.take(at, func(was, is *exactState) bool {
		return is.in[0].w[at.lease].phase == phase && was.in[0].w[at.lease].phase != phase
	})
	if err != nil {
		return err
	}
	f.all(func(of follows, s *exactState) {
		switch {
		case of == at:
		case by == 1 && of.instance != at.instance:
			s.fence(e.Lease, other)
		default:
			s.fence(e.Lease, by)
		}
	})
	f.world.fence(e.Lease, other)
	return nil
}

// commits follows a transaction that took effect.
func (f *follower) commits(e Event, at follows) error {
	p, rec := at.lease, e.Document.pack()
	var events uint16
	for _, b := range e.Shards {
		events |= f.x.event(b.Segment, b.Shard, 0)
	}
	states := f.reachable(at)
	owns := false
	for s := range states {
		owns = owns || s.holder[p] == 1
	}
	if !owns {
		return fmt.Errorf("another has fenced the lease")
	}
	if events == 0 && e.Markers == 0 && !e.Document.Loses && f.stands(p, rec) {
		return nil // a stutter: a failure, a count, another shard of an open segment
	}
	next := map[exactState]bool{}
	var packed record
	for s := range states {
		tx := &s.txn[p]
		marked := bits.OnesCount8(tx.markers) + int(bit(tx.sought && e.Document.Sought, 0))
		if !tx.open || tx.events != events || plain(tx.rec) != rec || f.loses(tx.rec) != e.Document.Loses ||
			e.Markers != marked && (e.Markers > 0 || !e.NoMarkers) {
			continue
		}
		packed = tx.rec
		f.x.end(&s, p)
		next[forget(s)] = true
	}
	if len(next) == 0 {
		return fmt.Errorf("the protocol would commit none but %s", f.open(states, p))
	}
	f.states[at] = next
	f.appended(p, packed, e.Offset, at)
	return nil
}

// moves follows the intent of a verb.
func (f *follower) moves(e Event) error {
	rec, last := e.Document.pack(), f.world.frontier(f.world.n[0])
	d := e.Document
	if f.world.holder[0] != byTool || !d.Moving || d.Epoch != last.epoch+1 || d.Current != 0 {
		return fmt.Errorf("an intent follows the verb's fence, and is of epoch %d", last.epoch+1)
	}
	if !d.Reset {
		moved := rec.frontier()
		moved.gaps = last.gaps
		rec = moved.pack()
	}
	f.appended(0, rec, e.Offset, follows{lease: -1})
	return nil
}

// appended puts a record into what all but one see committed.
func (f *follower) appended(p int, rec record, offset int64, except follows) {
	f.at[p] = append(f.at[p], offset)
	f.all(func(of follows, s *exactState) {
		if of != except {
			s.log[p][s.n[p]] = rec
			s.n[p]++
		}
	})
	if int(f.world.n[p]) == len(f.world.log[p]) { // the last ones matter
		f.at[p] = f.at[p][1:]
		f.all(func(of follows, s *exactState) { s.trim(p, of.lease) })
	}
}

// trim drops the first record of a log.
func (s *exactState) trim(p, lease int) {
	less := func(n *uint8) {
		if *n > 0 {
			*n--
		}
	}
	copy(s.log[p][:], s.log[p][1:])
	s.log[p][len(s.log[p])-1] = 0
	less(&s.n[p])
	less(&s.in[0].read[p])
	w := &s.in[0].w[lease]
	if p == 0 {
		less(&s.in[0].until)
		less(&w.until[0])
	}
	if p == lease {
		less(&w.until[1])
	}
}

// stands reports whether rec says what is committed already.
func (f *follower) stands(p int, rec record) bool {
	s := &f.world
	if rec.isFrontier() {
		return plain(s.frontier(s.n[0]).pack()) == rec
	}
	return f.x.cursor(s, s.n, p).pack() == rec
}

// plain is a record without the gaps of a frontier. What is complete before a segment that is named, or lost, is the
// one before it.
func plain(rec record) record {
	if !rec.isFrontier() {
		return rec
	}
	f := rec.frontier()
	f.gaps = 0
	if f.current > 0 {
		f.completed = f.current - 1
	}
	return f.pack()
}

// loses reports whether rec records lost history that the frontier does not.
func (f *follower) loses(rec record) bool {
	s := &f.world
	return rec.isFrontier() && rec.frontier().gaps&^s.frontier(s.n[0]).gaps != 0
}

// open describes the transactions that are open in states.
func (f *follower) open(states map[exactState]bool, p int) string {
	all := map[string]bool{}
	for s := range states {
		if tx := s.txn[p]; tx.open {
			all[fmt.Sprintf("%s with events %06b, markers %04b", tx.rec.what(), tx.events, tx.markers)] = true
		}
	}
	if len(all) == 0 {
		return "nothing"
	}
	return strings.Join(slices.Sorted(maps.Keys(all)), "; ")
}

// followed adds what a worker may do next, and what its view may read.
func (x *exact) followed(s exactState, at follows, add func(t exactState, shown bool)) {
	for q := range 2 {
		if s.in[0].read[q] < s.n[q] {
			t := s
			t.in[0].read[q]++
			add(t, false)
		}
	}
	if w := s.in[0].w[at.lease]; w.phase != idle { // an error, a rebalance, a stop
		t := s
		t.in[0].w[at.lease] = worker{missing: w.missing}
		add(t, false)
	}
	for _, step := range x.worker(&s, 0, at.lease, nil) {
		add(step.to, shown(&s, &step.to, at.lease))
	}
}

// shown reports whether others see a step of a worker.
func shown(was, is *exactState, lease int) bool {
	from, to := was.in[0].w[lease].phase, is.in[0].w[lease].phase
	acts := to == acquiring || to == fencedAll || from == acquiring && to == ready
	return is.in[0].end != alive || from != to && acts
}

// forget also gives back the fault.
func forget(s exactState) exactState {
	s.faults, s.breaking, s.events, s.highest, s.marker, s.from, s.first = 1, ok, 0, 0, 0, 1, 0
	for p := range s.txn {
		t := &s.txn[p]
		t.low, t.marked, t.high, t.old = 0, 0, 0, false
	}
	return s
}
