package protocol

// steps appends everything that can happen.
func (x *least) steps(s *leastState, to []step[leastState]) []step[leastState] {
	to = x.network(s, to)
	for i := range 2 {
		for p := range 2 {
			if s.read[i][p] < s.n[p] {
				to = append(to, x.reads(s, i, p))
			}
			a := leastTurn{least: x, s: s, i: i, p: p, w: s.w[i][p], k: x.fold(s, s.read[i]), to: to}
			a.steps()
			to = a.to
		}
		works := s.w[i][0].phase != off || s.w[i][1].phase != off // else a crash takes nothing but its view
		if works && s.faults > 0 && !x.slowClock {
			t := *s
			t.faults--
			for p := range 2 {
				x.abandon(&t, p, t.w[i][p])
			}
			t.w[i], t.read[i] = [2]leastWorker{}, [2]uint8{}
			to = append(to, step[leastState]{t, say("%c crashes and starts again", name(i)), false})
		}
	}
	if x.compacts && s.faults > 0 && !(x.lagged && x.fold(s, s.n).back != 0) {
		l := say("all stop, the state topic is compacted, and all start")
		to = append(to, step[leastState]{x.compacted(*s), l, false})
	}
	if x.seeks {
		to = x.operator(s, to)
	}
	return to
}

// reads is the step of a view. Owner records of a lease that the instance does not hold matter only with the next one.
func (x *least) reads(s *leastState, i, p int) step[leastState] {
	t := *s
	read := &t.read[i][p]
	for *read++; s.w[i][p].phase == off && *read < s.n[p] && s.log[p][*read-1].key() == ownerRecord; *read++ {
	}
	l := s.log[p][*read-1].doc().what().with("%c's view reads partition %d: ", name(i), uint8(p))
	return step[leastState]{t, l, true}
}
