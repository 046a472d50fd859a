//go:build !race

package protocol

// A third model, of one lease and brokers that may leave out the ends of a transaction (see offsets/torn.go). The other
// two take the end of a transaction for one step.

// Partitions: of the state topic, and two of the topic of records.
const (
	stateP = iota
	dataA
	dataB
	tornParts
)

// Events, by the partitions that their transaction writes to.
var tornEvents = [3]uint8{1<<dataA | 1<<dataB, 1 << dataA, 1 << dataB}

// Phases of the worker.
const (
	tornDown       = iota
	tornFenced     // it has a new epoch, and writes its owner record
	tornReading    // it waits until the view has read the owner record
	tornDiscarding // it aborts what is open
	tornRewriting  // it commits the cursor once more
	tornRewritten  // it waits until the view has read that
	tornDelivering
	tornCommitting // EndTxn is acknowledged
	tornWaiting    // it holds the lease while the frontier moves
)

// What the coordinator does.
const (
	tornIdle = iota
	tornOngoing
	tornEnding // it writes ends
)

type torn struct {
	phase   uint8
	move    uint8
	pos     uint8 // the worker's: the next event
	written uint8 // partitions that the open transaction has records in
	owner   bool  // the owner record is written

	coordinator uint8
	commits     bool
	unmarked    uint8 // partitions that the end is not written to

	cursor  uint8 // as views judge it: the next event
	last    uint8 // 1 + the cursor in an open transaction; 0: none
	before  uint8 // the same, of an earlier epoch
	undone  bool  // documents were taken back
	dropped uint8 // 1 + the cursor in these documents, which are still in the log; 0: none
	apart   bool  // there is an owner record behind the one that stands beside them
	open    [tornParts][3]uint8
	visible [tornParts][3]uint8

	crashes, cuts uint8
}

type tornRules struct {
	readBack   bool // a commit counts when the view has read it
	sideBySide bool // documents without an end before the next epoch do not count
	discard    bool // what is open is aborted before it is written again
	rewrite    bool // and then the cursor that counts is committed once more
	givesUp    bool // an owner that cannot read its owner record gives up, and another one comes
	takes      bool // the keeper that fences a lease for a move acquires it
	tidies     bool // and discards what is open
	cuts       uint8
	partly     bool // brokers may write some of the ends, and leave out the others
	aborts     bool // brokers may leave out the ends of an aborted transaction

	seeks bool
	to    uint8 // the event that a seek moves to
}

const (
	tornLost  = "I1, I2: an event is lost"
	tornTwice = "I1, I2: an event is visible twice"
)

func (r tornRules) start() torn { return torn{crashes: 2, cuts: r.cuts} }

func (r tornRules) broken(s *torn) string {
	for e, parts := range tornEvents {
		for p := range uint8(tornParts) {
			if parts&(1<<p) == 0 {
				continue
			}
			switch n := s.visible[p][e]; {
			case n == 0 && s.open[p][e] == 0 && int(s.cursor) > e && !(s.move == tornMoved && e < int(r.to)):
				return tornLost
			case n > 1:
				return tornTwice
			}
		}
	}
	return ""
}

// settled: all is delivered, and nothing that is open holds up consumers.
func (r tornRules) settled(s *torn) bool {
	return int(s.cursor) == len(tornEvents) && s.coordinator == tornIdle && s.open == [tornParts][3]uint8{} &&
		!s.moving() && (s.phase != tornDown || r.over(s))
}

func (r tornRules) stuck(*torn) string { return deadEnd }

func (r tornRules) steps(s *torn, to []step[torn]) []step[torn] {
	add := func(progress bool, l label, do func(*torn)) {
		next := *s
		do(&next)
		to = append(to, step[torn]{next, l, progress})
	}
	r.broker(s, add)
	r.keeper(s, add)
	if s.crashes > 0 && s.phase != tornDown {
		add(false, say("the worker crashes"), func(s *torn) { s.crash(); s.crashes-- })
	}
	if s.coordinator == tornEnding && s.phase != tornCommitting && s.phase != tornReading && s.phase != tornRewritten {
		return to // brokers take no record until the transaction before is complete
	}
	r.worker(s, add)
	return to
}

func (s *torn) crash() { s.phase, s.pos, s.owner = tornDown, 0, false }

func (r tornRules) worker(s *torn, add addTorn) {
	switch s.phase {
	case tornDown:
		if r.over(s) {
			return // the lease has nothing in the current segment, so nobody acquires it
		}
		sees := !s.moving() // else only an owner whose view is old acquires the lease: there is no current segment
		if s.coordinator == tornOngoing {
			add(sees, say("the next owner fences: the open transaction is aborted"), func(s *torn) { s.end(false) })
			return
		}
		add(sees, say("the next owner fences"), func(s *torn) { s.fenceKeeper(); s.phase = tornFenced })
	case tornFenced:
		add(true, say("it commits its owner record"),
			func(s *torn) { s.write(stateP); s.end(true); s.phase = tornReading })
	case tornReading:
		if s.read() {
			add(true, say("it reads its owner record"), func(s *torn) {
				s.phase = tornWaiting
				if s.undone && r.discard {
					s.phase = tornDiscarding
				}
			})
		} else if r.givesUp {
			add(true, say("it gives up"), func(s *torn) { s.crash() })
		}
	case tornDiscarding:
		if s.written == 0 {
			add(true, say("it writes to both partitions and aborts"), func(s *torn) {
				s.write(dataA)
				s.write(dataB)
				s.end(false)
				s.phase = tornWaiting
				if r.rewrite {
					s.phase = tornRewriting
				}
			})
		}
	case tornRewriting:
		if s.written == 0 {
			add(true, say("it commits the cursor once more"), func(s *torn) { s.rewrite(); s.phase = tornRewritten })
		}
	case tornRewritten:
		if s.read() {
			add(true, say("it reads its cursor"), func(s *torn) { s.phase = tornWaiting })
		} else {
			add(true, say("it gives up"), func(s *torn) { s.crash() })
		}
	case tornWaiting:
		if !s.moving() {
			add(true, say("it begins at event %d", s.cursor),
				func(s *torn) { s.phase, s.pos = tornDelivering, s.cursor })
		}
	case tornDelivering:
		r.deliver(s, add)
	case tornCommitting:
		switch {
		case !r.readBack && s.coordinator == tornIdle, s.read():
			add(true, say("event %d is committed", s.pos), func(s *torn) { s.phase, s.pos = tornDelivering, s.pos+1 })
		case r.readBack:
			add(true, say("it gives up"), func(s *torn) { s.crash() })
		}
	}
}

func (r tornRules) deliver(s *torn, add addTorn) {
	if int(s.pos) == len(tornEvents) {
		return
	}
	missing := tornEvents[s.pos] &^ s.written
	for p := range uint8(tornParts) {
		if missing&(1<<p) != 0 {
			add(true, say("it writes event %d to partition %d", s.pos, p),
				func(s *torn) { s.write(p); s.open[p][s.pos]++ })
		}
	}
	if missing == 0 {
		add(true, say("it commits event %d and the cursor", s.pos), func(s *torn) {
			s.write(stateP)
			s.last = s.pos + 2
			s.end(true)
			s.phase = tornCommitting
		})
	}
}
