package chaos

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// Kind is what is done.
type Kind string

// The kinds of faults.
const (
	Kill        Kind = "kill"
	Stop        Kind = "stop"
	Pause       Kind = "pause"
	Join        Kind = "join"
	Cut         Kind = "cut"
	KillBroker  Kind = "kill_broker"
	StopBroker  Kind = "stop_broker"
	PauseBroker Kind = "pause_broker"
	Seek        Kind = "seek"
	Retain      Kind = "retain"
	Trim        Kind = "trim"
	Scan        Kind = "scan"
	Grow        Kind = "grow"
	Storm       Kind = "storm"
)

// Fault is one thing that is done.
type Fault struct {
	At       time.Duration // since the start, by the plan
	Kind     Kind
	Instance int           // its slot; of brokers' faults -1
	Broker   int           // of a Cut: -1 is all of them; of other faults of instances -1
	Mode     Mode          // of a Cut
	Hold     time.Duration // until it is undone; 0: never
	Segments int           // of a Seek: how far before the open one; of Retain and Trim: how many are kept beside it
	Crash    time.Duration // of a Seek: when it is killed; of a Scan: when it is cancelled; 0: never
	Sweep    bool          // of a Scan
}

func (f Fault) String() string {
	text := string(f.Kind)
	if f.Instance >= 0 {
		text += fmt.Sprintf(" instance %d", f.Instance)
	}
	switch {
	case f.Kind == Cut && f.Broker < 0:
		text += fmt.Sprintf(" %s all brokers", f.Mode)
	case f.Kind == Cut:
		text += fmt.Sprintf(" %s broker %d", f.Mode, f.Broker)
	case f.Broker >= 0:
		text += fmt.Sprintf(" %d", f.Broker)
	}
	if f.Hold > 0 {
		text += fmt.Sprintf(" for %s", f.Hold)
	}
	switch {
	case f.Kind == Seek:
		text += fmt.Sprintf(", %d segments back", f.Segments)
	case f.removes():
		text += fmt.Sprintf(", then keep %d segments", f.Segments)
	}
	if f.Sweep {
		text += " with a sweep"
	}
	switch {
	case f.Crash > 0 && f.Kind == Scan:
		text += fmt.Sprintf(", cancelled after %s", f.Crash)
	case f.Crash > 0:
		text += fmt.Sprintf(", killed after %s", f.Crash)
	}
	return text
}

// removes reports whether the fault ends with a removal by retention.
func (f Fault) removes() bool { return f.Kind == Retain || f.Kind == Trim }

// The limits of a plan.
const (
	slots      = 5 // for instances
	fewest     = 3 // instances that run
	brokers    = 3
	gapLeast   = 1 * time.Second // between two faults
	gapMost    = 6 * time.Second
	draws      = 10                     // at a time, until one is possible
	brokerRest = 4 * time.Second        // after a broker's fault, before the next one's
	farthest   = 8                      // segments that a seek goes back
	crashMost  = 500 * time.Millisecond // after the start of a seek that is killed
	cancelMost = 4 * time.Second        // after the request of a scan that is cancelled
	growths    = 3                      // at most; each adds a partition
)

// planner draws faults that the state of things allows.
type planner struct {
	rng     *rand.Rand
	now     time.Duration
	running [slots]bool
	until   [slots]time.Duration // when the fault of an instance is over
	broker  time.Duration        // when a broker may be next
	grown   int
}

// Plan returns n faults, after a start with one instance more than the fewest.
func Plan(seed uint64, n int) []Fault {
	p := &planner{rng: rand.New(rand.NewPCG(seed, 0))}
	for i := range fewest + 1 {
		p.running[i] = true
	}
	var plan []Fault
	for len(plan) < n {
		p.now += p.between(gapLeast, gapMost)
		for range draws {
			if f, ok := p.draw(); ok {
				f.At = p.now
				plan = append(plan, f)
				break
			}
		}
	}
	return plan
}

func (p *planner) between(a, b time.Duration) time.Duration {
	return (a + time.Duration(p.rng.Int64N(int64(b-a)))).Round(10 * time.Millisecond)
}

// weights says how often the kinds are tried.
var weights = []struct {
	kind   Kind
	weight int
}{
	{Cut, 26}, {Pause, 16}, {Kill, 20}, {Join, 20}, {Stop, 10}, {KillBroker, 4}, {StopBroker, 3}, {PauseBroker, 3},
	{Seek, 5}, {Retain, 7}, {Trim, 3}, {Scan, 10}, {Grow, 2}, {Storm, 4},
}

func total() (n int) {
	for _, w := range weights {
		n += w.weight
	}
	return n
}

// draw returns a fault, if what was drawn is possible now.
func (p *planner) draw() (f Fault, ok bool) {
	n := p.rng.IntN(total())
	var kind Kind
	for _, w := range weights {
		if n -= w.weight; n < 0 {
			kind = w.kind
			break
		}
	}
	f = Fault{Kind: kind, Instance: -1, Broker: -1}
	switch kind {
	case Join:
		f.Instance, ok = p.pick(func(i int) bool { return !p.running[i] })
		if ok {
			p.running[f.Instance], p.until[f.Instance] = true, p.now
		}
		return f, ok
	case Kill, Stop:
		// A crash may hit one that is cut off, or paused. One that has to stop in order must be able to.
		f.Instance, ok = p.pick(func(i int) bool { return p.running[i] && (kind == Kill || p.whole(i)) })
		if ok = ok && p.count(func(i int) bool { return p.running[i] }) > fewest && (kind == Kill ||
			p.broker < p.now); ok {
			p.running[f.Instance] = false
		}
		return f, ok
	case Pause, Cut, Seek, Retain, Trim:
		if kind == Cut {
			f.Mode = []Mode{Stalled, Stalled, Deaf, Deaf, Reset, NoGroup, NoGroup}[p.rng.IntN(7)]
			if f.Broker = p.rng.IntN(brokers+2) - 2; f.Broker < 0 || f.Mode == NoGroup {
				f.Broker = -1 // the group's coordinator may be any
			}
		}
		f.Instance, ok = p.pick(p.whole)
		if ok = ok && p.count(p.whole) > 1; ok { // somebody goes on
			f.Hold = p.hold()
			p.place(&f)
			p.until[f.Instance] = p.now + f.Hold
		}
		return f, ok
	case Scan:
		if f.Sweep = p.rng.IntN(3) > 0; p.rng.IntN(4) == 0 {
			f.Crash = p.between(0, cancelMost)
		}
		return f, true
	case Grow:
		if ok = p.broker < p.now && p.grown < growths; ok {
			p.grown++
		}
		return f, ok
	case Storm:
		f.Hold = p.between(500*time.Millisecond, 8*time.Second)
		return f, true
	}
	f.Broker = p.rng.IntN(brokers)
	f.Hold = p.between(500*time.Millisecond, 8*time.Second)
	if ok = p.broker < p.now; ok {
		p.broker = p.now + f.Hold + brokerRest
	}
	return f, ok
}

// place says where a seek goes to, and what retention keeps.
func (p *planner) place(f *Fault) {
	switch {
	case f.Kind == Seek && p.rng.IntN(3) > 0:
		f.Segments = 1 + p.rng.IntN(farthest)
		fallthrough
	case f.Kind == Seek:
		if p.rng.IntN(4) == 0 {
			f.Crash = p.between(0, crashMost)
		}
	case f.removes():
		f.Segments = []int{0, 0, 0, 1, 4}[p.rng.IntN(5)]
		if p.rng.IntN(2) == 0 { // it keeps its leases, so nobody else delivers what is removed
			f.Hold = p.between(session/2, session)
		}
	}
}

// hold returns how long an instance is away: less than the session, more, or more than the transactions' timeout.
func (p *planner) hold() time.Duration {
	switch p.rng.IntN(5) {
	case 0, 1:
		return p.between(200*time.Millisecond, session)
	case 2, 3:
		return p.between(session+500*time.Millisecond, txnTimeout)
	}
	return p.between(txnTimeout+time.Second, 2*txnTimeout)
}

// whole reports whether an instance runs and nothing is wrong with it.
func (p *planner) whole(i int) bool { return p.running[i] && p.until[i] < p.now }

func (p *planner) count(is func(int) bool) (n int) {
	for i := range slots {
		if is(i) {
			n++
		}
	}
	return n
}

// pick returns one of the slots that are so.
func (p *planner) pick(is func(int) bool) (slot int, ok bool) {
	var all []int
	for i := range slots {
		if is(i) {
			all = append(all, i)
		}
	}
	if all == nil {
		return -1, false
	}
	return all[p.rng.IntN(len(all))], true
}

// step is a fault, or its end.
type step struct {
	at    time.Duration
	fault Fault
	undo  bool
}

// steps returns what is done, in order. A fault of an instance that is killed meanwhile ends with it: a new one is
// whole.
func steps(plan []Fault) []step {
	var all []step
	for _, f := range plan {
		all = append(all, step{f.At, f, false})
	}
	for i, f := range plan {
		if f.Hold == 0 {
			continue
		}
		end := f.At + f.Hold
		for _, g := range plan[i+1:] {
			if g.At < end && g.Kind == Kill && g.Instance == f.Instance {
				end = g.At
			}
		}
		all = append(all, step{end, f, true})
	}
	// Stable: what ends with a kill ends after it.
	slices.SortStableFunc(all, func(a, b step) int { return int(a.at - b.at) })
	return all
}

const (
	session    = 3 * time.Second
	txnTimeout = 8 * time.Second
)
