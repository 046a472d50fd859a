package protocol

// steps appends everything that can happen.
func (x *exact) steps(s *exactState, to []step[exactState]) []step[exactState] {
	to = x.broker(s, to)
	for i := range s.in {
		if s.in[i].end != alive || s.joined>>i&1 == 0 {
			continue
		}
		for p := range 2 {
			if s.in[i].read[p] < s.n[p] {
				t := *s
				t.in[i].read[p]++
				l := s.log[p][s.in[i].read[p]].what().with("%c's view reads partition %d: ", name(i), uint8(p))
				to = append(to, step[exactState]{t, l, true})
			}
			to = x.worker(s, i, p, to)
		}
		if s.faults > 0 {
			t := *s
			t.faults--
			t.in[i] = instance{until: s.end(0), leases: s.parts}
			to = append(to, step[exactState]{t, say("%c crashes and starts again", name(i)), false})
		}
		if x.frozen && s.parts == 2 && !s.frontier(s.in[i].read[0]).grown &&
			s.in[i].read[0] >= min(s.in[i].until, s.n[0]) {
			t := *s
			t.in[i].end = wrong
			l := say("%c ends: the state topic has another partition count than the frontier", name(i))
			to = append(to, step[exactState]{t, l, true})
		}
		if x.once && x.finished(s, i) {
			t := *s
			t.in[i].end = done
			t.leave(i)
			if owed := x.owed(&t); owed != 0 {
				t.breaking = falseEnd
			}
			to = append(to,
				step[exactState]{t, say("%c ends with exit code 0: everything is delivered", name(i)), true})
		}
	}
	if x.once {
		to = x.rebalance(s, to)
	}
	return x.operator(s, to)
}

// owed returns the events that are neither delivered since the last seek that is committed, nor removed.
func (x *exact) owed(s *exactState) (events uint16) {
	f := s.frontier(s.n[0])
	for n := max(f.completed, s.removed) + 1; n <= x.segments; n++ {
		events |= x.of(n)
	}
	if f.moving || f.sought && !f.told {
		return events // all of it has to come again
	}
	return events &^ s.events
}

// finished is how --once finds that there is nothing left to do.
func (x *exact) finished(s *exactState, i int) bool {
	in := s.in[i]
	f := s.frontier(in.read[0])
	if x.knownAtStart && !s.passed(in.read[0], in.until, 0) {
		return false
	}
	n := f.current
	if f.moving || f.reset || in.read[0] == 0 || x.after(s, max(f.completed, n)) != 0 {
		return false
	}
	if n == 0 {
		return true
	}
	if !x.isOpen(s, n) || s.removed >= n {
		return false
	}
	for p := range 2 {
		if !x.owns(2, p, n) {
			continue
		}
		if x.onceByState {
			c := x.cursor(s, in.read, p)
			if _, more := x.unread(c, 2, p, n); more || c.epoch != f.epoch {
				return false
			}
		} else if s.group[p] == uint8(i+1) && in.w[p].drained != n { // the lease of another is its own matter
			return false
		}
	}
	return true
}

// rebalance is the group: B joins A, which then gives up lease 1, and a lease of nobody is given to a member.
func (x *exact) rebalance(s *exactState, to []step[exactState]) []step[exactState] {
	if s.joined == 1 && s.in[0].end == alive {
		t := *s
		t.joined, t.group[1] = 3, 0
		to = append(to, step[exactState]{t, say("B joins the group, and lease 1 is taken from A"), false})
	}
	for p := range 2 {
		if s.group[p] != 0 {
			continue
		}
		i := p
		if s.in[i].end != alive || s.joined>>i&1 == 0 {
			i = 1 - p
		}
		if s.in[i].end != alive || s.joined>>i&1 == 0 {
			continue
		}
		t := *s
		t.group[p] = uint8(i + 1)
		to = append(to, step[exactState]{t, say("the group gives lease %d to %c", uint8(p), name(i)), true})
	}
	return to
}

// leave takes an instance out of the group.
func (s *exactState) leave(i int) {
	for p := range s.group {
		if s.group[p] == uint8(i+1) {
			s.group[p] = 0
		}
	}
}
