//go:build !race

package protocol

// What the keeper does about the lease of this model when the frontier is moved (seek, reset). The frontier itself is
// in another partition, and its records are complete.
const (
	tornStays    = iota
	tornIntended // no segment is the current one, and the keeper has to fence the lease
	tornAwaited  // it has fenced the lease, and waits until the view has read the partition
	tornTaken    // it has fenced the lease, and writes an owner record
	tornTaking   // it waits until the view has read that
	tornTidying  // it aborts what is open
	tornTidied   // it commits the cursor once more, and waits until the view has read that
	tornMoved
)

func (s *torn) moving() bool { return s.move != tornStays && s.move != tornMoved }

// over reports whether a seek has left nothing for the lease to do.
func (r tornRules) over(s *torn) bool { return s.move == tornMoved && int(r.to) == len(tornEvents) }

// fenceKeeper is another acquisition while the keeper has the lease: the keeper begins again.
func (s *torn) fenceKeeper() {
	if s.moving() && s.move != tornAwaited {
		s.move = tornIntended
	}
}

func (r tornRules) keeper(s *torn, add addTorn) {
	if s.moving() && s.move != tornIntended && s.crashes > 0 {
		add(false, say("the keeper crashes"), func(s *torn) { s.move = tornIntended; s.crashes-- })
	}
	switch s.move {
	case tornStays:
		if r.seeks {
			add(false, say("an operator writes the intent of a seek"), func(s *torn) { s.move = tornIntended })
		}
	case tornIntended:
		r.keeperFences(s, add)
	case tornAwaited:
		if s.before == 0 {
			add(true, say("the keeper has read the partition, and moves the frontier"), r.moves)
		}
	case tornTaken:
		add(true, say("the keeper commits an owner record"), func(s *torn) {
			s.write(stateP)
			s.end(true)
			s.move = tornTaking
		})
	case tornTaking:
		switch {
		case !s.read():
			add(true, say("the keeper gives up"), func(s *torn) { s.move = tornIntended })
		case s.undone && r.tidies:
			add(true, say("the keeper reads its owner record"), func(s *torn) { s.move = tornTidying })
		default:
			add(true, say("the keeper reads its owner record, and moves the frontier"), r.moves)
		}
	case tornTidying:
		if s.coordinator == tornIdle {
			add(true, say("the keeper writes to both partitions, and aborts"), func(s *torn) {
				s.write(dataA)
				s.write(dataB)
				s.end(false)
				s.move = tornTidied
			})
		}
	case tornTidied:
		switch {
		case s.read() && s.undone:
			add(true, say("the keeper commits the cursor once more"), (*torn).rewrite)
		case s.read():
			add(true, say("the keeper reads its cursor, and moves the frontier"), r.moves)
		default:
			add(true, say("the keeper gives up"), func(s *torn) { s.move = tornIntended })
		}
	}
}

func (r tornRules) keeperFences(s *torn, add addTorn) {
	switch {
	case s.coordinator == tornEnding:
	case s.coordinator == tornOngoing:
		add(true, say("the keeper fences: the open transaction is aborted"), func(s *torn) { s.end(false); s.crash() })
	case r.takes:
		add(true, say("the keeper fences"), func(s *torn) { s.crash(); s.move = tornTaken })
	default:
		add(true, say("the keeper fences"), func(s *torn) { s.crash(); s.move = tornAwaited })
	}
}

// moves is the frontier of the new place, with a marker in all partitions of records: the events after it count anew.
func (r tornRules) moves(s *torn) {
	s.move, s.cursor, s.visible = tornMoved, r.to, [tornParts][3]uint8{}
}
