package protocol

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

// network appends late arrivals, and sessions that expire.
func (x *least) network(s *leastState, to []step[leastState]) []step[leastState] {
	if x.finalizes && !s.final {
		t := *s
		t.final = true
		to = append(to, step[leastState]{t, say("the service finalizes segment %d", x.segments), true})
	}
	for p := range 2 {
		if s.orphan[p].kind != 0 {
			t := *s
			t.orphan[p] = request{}
			x.arrive(&t, p, s.orphan[p])
			to = append(to,
				step[leastState]{t, say("a request of a closed producer arrives at lease %d", uint8(p)), false})
		}
		if x.takeover && s.faults > 0 {
			t := *s
			t.faults--
			old := &t.w[s.group[p]-1][p]
			old.expired = old.phase != off
			t.group[p] = 3 - s.group[p]
			if !x.isLate(old.req) {
				old.onWire = false // it arrived before this, or never
			}
			from := int(s.group[p]) - 1
			l := say("the session of %c expires, and %c is given lease %d", name(from), name(1-from), uint8(p))
			to = append(to, step[leastState]{t, l, false})
		}
	}
	return to
}

// abandon closes a producer. What it has on the wire arrives before that, or never. Late is what nobody has waited for.
func (x *least) abandon(s *leastState, p int, w leastWorker) {
	if w.onWire && (x.isLate(w.req) || !x.awaits) && s.orphan[p].kind == 0 {
		s.orphan[p] = w.req
	}
}

// isLate reports whether a request may arrive after the session in which it was sent.
func (x *least) isLate(r request) bool {
	return x.late != 0 && r.kind == docRequest && (x.late == anyRecord || x.late == r.doc.key())
}

// compacted keeps the last record of each key, and nothing runs.
func (x *least) compacted(s leastState) leastState {
	s.faults--
	for i := range 2 {
		for p := range 2 {
			x.abandon(&s, p, s.w[i][p])
		}
	}
	s.w, s.read = [2][2]leastWorker{}, [2][2]uint8{}
	for p := range 2 {
		var last [4]int
		for k := range s.n[p] {
			last[s.log[p][k].key()] = int(k)
		}
		for k := range s.n[p] {
			if last[s.log[p][k].key()] != int(k) {
				s.log[p][k] = 0
			}
		}
	}
	return s
}
