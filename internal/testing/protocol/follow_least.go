package protocol

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// LeastTrace is what the program did in a run with two leases and at least once, in the order in which its brokers took
// the records of all producers.
type LeastTrace struct {
	Bundles bool // segments may be small enough for one
	Events  []LeastEvent
}

// LeastEvent is one that others can see.
type LeastEvent struct {
	Kind     EventKind // Starts, Acquired, Finalized, or one of those below
	Instance string    // no two of a trace have one name, also not one after the other; "" is a verb
	Lease    int
	Seen     [2]int64 // of Acquired: where the view stood in the partition of each lease

	Term     int64 // of all that is written: the offset of the owner record of its producer
	Offset   int64 // of Owns and Writes
	Document LeastDocument
	Events   []Block // of Delivers: some are written; Whole: all of it are now, under this term
	Whole    []Block
	Marker   uint8 // of Marks: the segment behind which the program first promised its time
	Last     bool  // every partition has it
}

// The kinds of events without transactions.
const (
	Owns     EventKind = "writes its owner record"
	Writes   EventKind = "writes"
	Delivers EventKind = "writes events"
	Marks    EventKind = "writes a marker"
)

// LeastDocument is a frontier or cursor of the state topic.
type LeastDocument struct {
	Document
	Owed      bool
	Resolved  uint8 // the segment behind which the program first promised that time
	Base      uint8
	Seen      []int64 // of a frontier that repairs: by lease
	NoMarkers bool    // there is no topic yet
}

func (e LeastEvent) String() string {
	text := fmt.Sprintf("%s, lease %d, term %d %s", e.Instance, e.Lease, e.Term, e.Kind)
	switch e.Kind {
	case Writes, Acquired:
		text += " " + e.Document.doc().what().String()
	case Delivers:
		text += fmt.Sprintf(" of %v, wholly of %v", e.Events, e.Whole)
	case Marks:
		text += fmt.Sprintf(" behind segment %d, the last one: %t", e.Marker, e.Last)
	}
	return text
}

// doc returns the model's document, without what its writer's acquisition is called.
func (d LeastDocument) doc() doc {
	if d.IsFrontier {
		return doc{
			kind: frontierRecord, epoch: d.Epoch, completed: d.Completed, current: d.Current, moving: d.Moving,
			sought: d.Sought && !d.Told, owed: d.Owed, resolved: d.Resolved, base: d.Base,
		}
	}
	c := doc{kind: cursorRecord, epoch: d.Epoch, segment: d.Segment, done: d.Done, resolved: d.Resolved}
	for _, read := range d.Read {
		c.pos |= uint8(bit(read, 0))
	}
	return c
}

// same returns what two documents have in common if they say the same. What is complete before a segment that is named
// is the one before it.
func same(d doc) doc {
	d.acq, d.base, d.repaired = 0, 0, [2]uint8{}
	if d.kind == frontierRecord && d.current > 0 {
		d.completed = d.current - 1
	}
	if d.kind == cursorRecord {
		d.resolved = 0
		if d.done {
			d.pos = 1
		}
	}
	return d
}

// leastFollower is follower without transactions: it keeps, for each worker, the states that fit what was seen so far.
type leastFollower struct {
	possible[leastState]
	x       least
	terms   [2][]ownership     // by lease: of all owner records
	arrived map[follows]uint16 // events of the worker's last term that are written
	silent  bool               // there is no topic for markers
}

// ownership is what an owner record begins.
type ownership struct {
	offset int64
	acq    uint8 // what the model calls it
	verb   bool
}

// FollowLeast returns an error with the first event that the protocol does not allow, or if the feed is not delivered
// in the end. It takes the steps of the model of at_least_once, the ones that the explorer walks through; see doc.go.
func FollowLeast(t LeastTrace) error {
	f := leastFollower{
		x: least{allLeastRules(), leastSituation{
			segments: Segments, perShard: 1, bundles: t.Bundles, fresh: true, finalizes: true, asProgram: true,
		}},
		arrived: map[follows]uint16{},
	}
	f.possible = possible[leastState]{
		world: f.x.start(), states: map[follows]map[leastState]bool{}, steps: f.followed, forget: forgetLeast,
	}
	f.world.group = [2]uint8{1, 1}
	for k, e := range t.Events {
		if err := f.follow(e); err != nil {
			return fmt.Errorf("event %d: %s: %w", k, e, err)
		}
	}
	if last := f.x.fold(&f.world, f.world.n).f; last.completed != Segments || last.owed {
		return fmt.Errorf("the trace ends, and the last frontier is %s", last.what())
	}
	return nil
}

func (f *leastFollower) follow(e LeastEvent) error {
	at := follows{e.Instance, e.Lease}
	switch e.Kind {
	case Starts:
		for p := range 2 {
			f.begin(follows{e.Instance, p}, f.world)
		}
		return nil
	case Finalized:
		f.all(func(_ follows, s *leastState) { s.final = true })
		return nil
	case Acquired:
		return f.take(at, func(was, is *leastState) bool {
			k := f.x.fold(is, is.read[0])
			c := k.cursor[e.Lease]
			if c.kind == 0 || c.epoch < k.f.epoch {
				c = doc{kind: cursorRecord, epoch: k.f.epoch}
			}
			return was.w[0][e.Lease].phase == viewing && is.w[0][e.Lease].phase == atRest &&
				same(c) == same(e.Document.doc()) && f.hasRead(is.read[0], e.Seen)
		})
	case Owns:
		return f.owns(e, at)
	}
	term, err := f.term(e)
	if err != nil {
		return err
	}
	switch e.Kind {
	case Writes:
		return f.writes(e, at, term)
	case Delivers:
		return f.delivers(e, at)
	case Marks:
		return f.marks(e, at)
	}
	return nil
}

// term returns that of what is written. Nothing comes behind the owner record of an instance that the group has given
// the lease to since: the session was over, or all was answered. A verb does not ask the group.
func (f *leastFollower) term(e LeastEvent) (of ownership, err error) {
	for _, o := range f.terms[e.Lease] {
		switch {
		case o.offset == e.Term:
			of = o
		case o.offset > e.Term && !o.verb:
			return of, fmt.Errorf("another has acquired the lease")
		}
	}
	return of, nil
}

// acquisitions is how many the model can tell apart.
const acquisitions = 15

// owns follows an owner record.
func (f *leastFollower) owns(e LeastEvent, at follows) error {
	p := e.Lease
	if e.Instance != "" {
		f.arrived[at] = 0
		err := f.take(at, func(was, is *leastState) bool {
			if was.w[0][p].phase != off || is.w[0][p].phase != owning {
				return false
			}
			f.x.acked(is, p)
			return true
		})
		if err != nil {
			return err
		}
	} else {
		at = follows{lease: -1}
	}
	acq := f.world.acqs[p]%acquisitions + 1
	f.terms[p] = append(f.terms[p], ownership{e.Offset, acq, e.Instance == ""})
	f.all(func(_ follows, s *leastState) { s.acqs[p] = acq })
	f.appended(p, doc{kind: ownerRecord, acq: acq}, e.Offset, at)
	return nil
}

// acked takes the step in which the worker's record is taken and acknowledged.
func (x *least) acked(s *leastState, p int) {
	a := leastTurn{least: x, s: s, p: p, w: s.w[0][p]}
	a.onWire()
	*s = a.to[0].to
}

// writes follows a document.
func (f *leastFollower) writes(e LeastEvent, at follows, term ownership) error {
	p, d := e.Lease, e.Document.doc()
	d.acq = term.acq
	if e.Instance == "" {
		k := f.x.fold(&f.world, f.world.n)
		if !d.moving || d.epoch != k.f.epoch+1 || d.current != 0 {
			return fmt.Errorf("an intent is of epoch %d", k.f.epoch+1)
		}
		f.appended(p, d, e.Offset, follows{lease: -1})
		return nil
	}
	for q, n := range e.Document.Seen {
		n, _ := slices.BinarySearch(f.at[q], n)
		read := [2]uint8{}
		read[q] = uint8(n)
		d.repaired[q] = f.x.fold(&f.world, read).foreign[q]
	}
	states := f.reachable(at)
	next := map[leastState]bool{}
	foreign := d.acq != f.world.acqs[p]
	if f.stands(p, d) || foreign && d.kind == cursorRecord && d.segment == 0 { // a failure, a count
		for s := range states {
			if s.w[0][p].phase > viewing {
				next[s] = true
			}
		}
		if len(next) == 0 {
			return fmt.Errorf("in none of %d states the worker holds the lease", len(states))
		}
		f.states[at] = next
		if foreign { // which matters
			f.appended(p, d, e.Offset, follows{lease: -1})
		}
		return nil
	}
	for s := range states {
		if w := s.w[0][p]; w.onWire && w.req.kind == docRequest && same(w.req.doc.doc()) == same(d) {
			f.x.acked(&s, p)
			s.log[p][s.n[p]-1] = d.pack()
			next[forgetLeast(s)] = true
		}
	}
	if len(next) == 0 {
		return fmt.Errorf("the protocol would write nothing but %s", f.onWire(states, p))
	}
	if d.kind == frontierRecord && !foreign {
		f.silent = e.Document.NoMarkers
	}
	f.states[at] = next
	f.appended(p, d, e.Offset, at)
	return nil
}

// stands reports whether a document says what is known already.
func (f *leastFollower) stands(p int, d doc) bool {
	k := f.x.fold(&f.world, f.world.n)
	if d.kind == frontierRecord {
		return same(k.f) == same(d)
	}
	c := k.cursor[p]
	if same(c) == same(d) {
		return true
	}
	void := same(doc{kind: cursorRecord, epoch: k.f.epoch})
	return (c.kind == 0 || c.epoch < k.f.epoch) && same(d) == void && (p == 0 || !k.f.moving)
}

// delivers follows events.
func (f *leastFollower) delivers(e LeastEvent, at follows) error {
	p := e.Lease
	next := f.reachable(at)
	for _, b := range e.Events {
		some := map[leastState]bool{}
		for s := range next {
			w := s.w[0][p]
			to := w.last
			if w.phase == data {
				to = w.n
			}
			if (w.phase == data || w.phase == taking) && w.n <= b.Segment && b.Segment <= to &&
				(w.phase == taking || int(b.Shard) == p) {
				some[s] = true
			}
		}
		if len(some) == 0 {
			return fmt.Errorf("in none of %d states the protocol delivers shard %d of segment %d", len(next),
				b.Shard, b.Segment)
		}
		next = some
	}
	f.states[at] = next
	for _, b := range e.Whole {
		f.arrived[at] |= event(b.Segment, b.Shard)
	}
	return nil
}

// event is the bit of the one event of a shard of segment n.
func event(n, shard uint8) uint16 { return 1 << (2*(n-1) + shard) }

// marks follows a marker. It is there when the last partition has it.
func (f *leastFollower) marks(e LeastEvent, at follows) error {
	p := e.Lease
	states := f.reachable(at)
	next := map[leastState]bool{}
	for s := range states {
		if w := s.w[0][p]; w.onWire && w.req.kind == markerRequest && w.req.n == e.Marker {
			if e.Last {
				f.x.acked(&s, p)
				s = forgetLeast(s)
			}
			next[s] = true
		}
	}
	if len(next) == 0 {
		return fmt.Errorf("in none of %d states the protocol writes this marker", len(states))
	}
	f.states[at] = next
	return nil
}

// appended puts a document into the log that all but one see.
func (f *leastFollower) appended(p int, d doc, offset int64, except follows) {
	f.at[p] = append(f.at[p], offset)
	if int(f.world.n[p]) == len(f.world.log[p]) {
		panic("a trace has more documents than the model's log")
	}
	f.all(func(of follows, s *leastState) {
		if of != except {
			s.log[p][s.n[p]] = d.pack()
			s.n[p]++
		}
	})
}

// onWire describes what is on the wire in states.
func (f *leastFollower) onWire(states map[leastState]bool, p int) string {
	all := map[string]bool{}
	for s := range states {
		switch w := s.w[0][p]; {
		case w.onWire && w.req.kind == docRequest:
			all[w.req.doc.doc().what().String()] = true
		case w.onWire:
			all[fmt.Sprintf("what precedes it, %+v", w.req)] = true
		}
	}
	if len(all) == 0 {
		return "nothing"
	}
	return strings.Join(slices.Sorted(maps.Keys(all)), "; ")
}

// followed adds what a worker may do next, and what its view may read.
func (f *leastFollower) followed(s leastState, at follows, add func(t leastState, shown bool)) {
	for q := range 2 {
		if s.read[0][q] < s.n[q] {
			t := s
			t.read[0][q]++
			add(t, false)
		}
	}
	if s.w[0][at.lease].phase != off { // an error, a rebalance, a stop
		t := s
		t.w[0][at.lease] = leastWorker{}
		add(t, false)
	}
	a := leastTurn{least: &f.x, s: &s, p: at.lease, w: s.w[0][at.lease], k: f.x.fold(&s, s.read[0])}
	a.steps()
	for _, step := range a.to {
		add(step.to, !f.hidden(&s, &step.to, at))
	}
}

// hidden reports whether nobody sees a step of a worker.
func (f *leastFollower) hidden(was, is *leastState, at follows) bool {
	from, to := was.w[0][at.lease], is.w[0][at.lease]
	switch {
	case to.phase == off:
		return true
	case from.phase == off, from.phase == viewing:
		return false
	case !from.onWire || to.onWire:
		return true
	case from.req.kind == eventRequest:
		return f.arrived[at]&event(from.req.n, from.req.key) != 0
	case from.req.kind == markerRequest:
		return f.silent
	}
	return false
}

func forgetLeast(s leastState) leastState {
	s.first, s.newest, s.marker, s.breaking = [2]uint8{}, [2]uint8{}, 0, 0
	return s
}
