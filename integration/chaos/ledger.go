package chaos

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"blobfeed/internal/testing/feedsim"
	"blobfeed/verify"
)

// ledger knows which events of the feed have to come, and in which rounds: the marker of a seek ends a round and
// begins the next one.
//
// In each round everything comes from the target of its seek up to where the next seek left off, or up to the end
// of the feed. An event may be missing only if retention has removed it, and then a marker of the round must
// record the gap, or the seek went to a place that was gone already: delivery began at what was left. Everything
// else is a failure, also a gap where retention removed nothing, and a record of no event.
type ledger struct {
	events    []entry
	index     map[string]int // by position: an event can be twice in the log
	bySegment map[string][]int
	touched   map[string]bool // segments of which retention has removed something
	rounds    []round
	at        map[int32]int   // round by partition
	unplaced  map[int32][]int // by partition that was added: its events before its first seek, which says the round
	failures  []verify.Failure
	checked   int64
}

// entry is an event.
type entry struct {
	segment      string
	shard, chunk int
	removed      bool
	rounds       []int // in which it came
}

// round is what comes between two seeks.
type round struct {
	target string // the first segment that is due; "" is the first of the feed
	left   string // the segment in which the next seek found the bridge; "": there was none
	first  string // the first segment of which something came
	gaps   map[gap]bool
}

// gap is what a marker says, from and to included.
type gap struct{ from, to string }

// keptFailures is the maximum number of failures that are kept.
const keptFailures = 20

var _ verify.Validator = (*ledger)(nil)

func newLedger() *ledger {
	return &ledger{
		index: map[string]int{}, bySegment: map[string][]int{}, touched: map[string]bool{}, at: map[int32]int{},
		rounds: []round{{gaps: map[gap]bool{}}}, unplaced: map[int32][]int{},
	}
}

// expect says that an event has to come, and returns its number.
func (l *ledger) expect(e feedsim.Event) int {
	n := len(l.events)
	l.events = append(l.events, entry{segment: e.Segment, shard: e.Shard, chunk: e.Chunk})
	l.index[e.Position()] = n
	l.bySegment[e.Segment] = append(l.bySegment[e.Segment], n)
	return n
}

// remove says that retention is about to remove events of a segment, and returns which.
func (l *ledger) remove(segment string, gone func(shard, chunk int) bool) (removed []int) {
	for _, n := range l.bySegment[segment] {
		if e := &l.events[n]; gone(e.shard, e.chunk) {
			e.removed, l.touched[segment] = true, true
			removed = append(removed, n)
		}
	}
	return removed
}

// Note implements verify.Validator.
func (l *ledger) Note(r verify.Record) {
	if r.Key == nil {
		l.marker(&r)
		return
	}
	if r.Scanned() {
		return // a row is of no event
	}
	l.checked++
	n, known := l.index[string(r.Header("position"))]
	if !known {
		l.fail(&r, "event %q at %s was not expected", r.Header("ce_id"), r.Header("position"))
		return
	}
	k, placed := l.at[r.Partition]
	if !placed && r.Partition >= partitions {
		l.unplaced[r.Partition] = append(l.unplaced[r.Partition], n)
		return
	}
	l.came(&r, n, k)
}

// came says that an event came in a round.
func (l *ledger) came(r *verify.Record, n, k int) {
	e := &l.events[n]
	if first := &l.rounds[k].first; *first == "" || e.segment < *first {
		*first = e.segment
	}
	if target := l.rounds[k].target; e.segment < target {
		l.fail(r, "the event is of segment %s, and the last seek went to %s", e.segment, target)
	}
	if !slices.Contains(e.rounds, k) {
		e.rounds = append(e.rounds, k)
	}
}

// place says in which round the first events of a partition came that was added.
func (l *ledger) place(p int32, k int) {
	l.at[p] = k
	for _, n := range l.unplaced[p] {
		l.came(&verify.Record{Partition: p}, n, k)
	}
	delete(l.unplaced, p)
}

// before returns the round before a seek.
func (l *ledger) before(from, to string) int {
	for k := 1; k < len(l.rounds); k++ {
		if l.rounds[k].target == to && l.rounds[k-1].left == from {
			return k - 1
		}
	}
	return len(l.rounds) - 1 // no other partition has told of it yet
}

// marker takes over what a marker says of gaps and seeks. A gap is of the round before the seek, if it says both.
func (l *ledger) marker(r *verify.Record) {
	if from, to, ok := strings.Cut(string(r.Header("seek")), " "); ok && r.Partition >= partitions {
		if _, placed := l.at[r.Partition]; !placed {
			l.place(r.Partition, l.before(from, to))
		}
	}
	_, placed := l.at[r.Partition]
	if from, to, ok := strings.Cut(string(r.Header("gap")), " "); ok && (placed || r.Partition < partitions) {
		g := gap{from, to}
		l.rounds[l.at[r.Partition]].gaps[g] = true
		if !l.justified(g) {
			l.fail(r, "a gap from %s to %s is recorded, and retention has removed nothing there", from, to)
		}
	}
	from, to, ok := strings.Cut(string(r.Header("seek")), " ")
	if !ok {
		return
	}
	l.at[r.Partition]++
	switch k := l.at[r.Partition]; {
	case k == len(l.rounds):
		l.rounds[k-1].left = from
		l.rounds = append(l.rounds, round{target: to, gaps: map[gap]bool{}})
	case l.rounds[k].target != to || l.rounds[k-1].left != from:
		l.fail(r, "the seek from %s to %s is another one than that of the other partitions", from, to)
	}
}

func (l *ledger) justified(g gap) bool {
	for segment := range l.touched {
		if g.from <= segment && segment <= g.to {
			return true
		}
	}
	return false
}

// fate is what became of an event that has to come.
type fate int

const (
	came    fate = iota
	missing      // and nothing says why
	lost         // retention has removed it, and the markers say so
)

func (l *ledger) fate(e *entry, k int) fate {
	r := &l.rounds[k]
	if e.segment < r.target || k+1 < len(l.rounds) && e.segment >= r.left || slices.Contains(e.rounds, k) {
		return came // or need not
	}
	if !e.removed {
		return missing
	}
	if e.segment < r.first {
		return lost
	}
	for g := range r.gaps {
		if g.from <= e.segment && e.segment <= g.to {
			return lost
		}
	}
	return missing
}

// Failures implements verify.Validator.
func (l *ledger) Failures() []verify.Failure {
	for p := range l.unplaced { // no seek has come since
		l.place(p, len(l.rounds)-1)
	}
	all := slices.Clone(l.failures)
	missed := map[string]int{} // by what is to be said
	for i := range l.events {
		e := &l.events[i]
		for k := range l.rounds {
			if l.fate(e, k) == missing {
				missed[fmt.Sprintf("segment %s, after seek %d, removed %t", e.segment, k, e.removed)]++
			}
		}
	}
	for _, where := range slices.Sorted(maps.Keys(missed)) {
		all = append(all, verify.Failure{Problem: fmt.Sprintf("%d events are missing: %s", missed[where], where)})
	}
	return all[:min(len(all), keptFailures)]
}

// Checked is how many records were judged.
func (l *ledger) Checked() int64 { return l.checked }

func (l *ledger) fail(r *verify.Record, format string, args ...any) {
	if len(l.failures) < keptFailures {
		l.failures = append(l.failures, verify.Failure{
			Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, Key: string(r.Key),
			Problem: fmt.Sprintf(format, args...),
		})
	}
}

// sought reports whether a seek to a target came, after the first n seeks.
func (l *ledger) sought(target string, n int) bool {
	return slices.ContainsFunc(l.rounds[n+1:], func(r round) bool { return r.target == target })
}

// Moves are what seeks and retention did to the events of a run.
type Moves struct {
	Seeks, Gaps int
	Removed     int // events
	Lost        int // of them, those that came in no round
	Skipped     int // events that retention left, and that came in no round
}

func (l *ledger) moves() (m Moves) {
	m.Seeks = len(l.rounds) - 1
	for _, r := range l.rounds {
		m.Gaps += len(r.gaps)
	}
	for i := range l.events {
		e := &l.events[i]
		if e.removed {
			m.Removed++
		}
		switch {
		case len(e.rounds) > 0:
		case e.removed:
			m.Lost++
		default:
			m.Skipped++
		}
	}
	return m
}

func (m Moves) String() string {
	return fmt.Sprintf("%d seeks, %d gaps; retention removed %d events, %d of them before they came; seeks skipped %d",
		m.Seeks, m.Gaps, m.Removed, m.Lost, m.Skipped)
}
