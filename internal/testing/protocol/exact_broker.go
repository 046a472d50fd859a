package protocol

// end is what a request for the high watermark of a partition brings. An open transaction has a record there, too.
func (s *exactState) end(p int) uint8 {
	if s.txn[p].open {
		return s.n[p] + 1
	}
	return s.n[p]
}

// passed reports whether a view that has read so far is past a high watermark. An aborted record is passed, too.
func (s *exactState) passed(read, until uint8, p int) bool { return read >= min(until, s.end(p)) }

// fence is InitProducerID: it aborts what the former holder has open.
func (s *exactState) fence(p int, by uint8) { s.holder[p], s.txn[p] = by, txn{} }

// produce writes the records of a transaction. They get their place now.
func (s *exactState) produce(p int, t txn) {
	t.open, t.low, t.marked, t.high = true, s.highest, s.marker, 15
	s.first = uint8(p)
	if s.txn[1-p].open {
		s.first = uint8(1 - p)
	}
	s.txn[p] = t
}

// commit makes the transaction of p visible, and judges what readers see now.
func (x *exact) commit(s *exactState, p int) {
	t, other := s.txn[p], &s.txn[1-p]
	s.txn[p] = txn{}
	if t.rec != 0 {
		s.log[p][s.n[p]] = t.rec
		s.n[p]++
	}
	before := other.open && s.first == uint8(p) // the other one is open and stands behind
	behind := other.open && !before
	fail := func(what uint8) {
		if s.breaking == ok {
			s.breaking = what
		}
	}
	if t.sought { // what comes behind this marker may have come before
		s.events, s.highest, s.marker, s.from = 0, 0, 0, x.segments+1
		if before {
			other.low, other.marked = 0, 0
		} else if behind {
			other.old = true
		}
	}
	for n := uint8(1); n <= x.segments; n++ {
		for shard := range uint8(2) {
			for pos := range x.in(n, shard) {
				e := x.event(n, shard, pos)
				if t.events&e == 0 {
					continue
				}
				switch {
				case t.marked >= n:
					fail(below)
				case t.low > n || t.high < n || pos > 0 && !t.old && s.events&x.event(n, shard, pos-1) == 0:
					fail(order)
				case !t.old && s.events&e != 0:
					fail(twice)
				}
				t.low = max(t.low, n)
				if !t.old {
					s.events |= e
					s.highest = max(s.highest, n)
				}
				if before && !t.old {
					other.low = max(other.low, n)
				} else if behind && !other.old {
					other.high = min(other.high, n)
				}
			}
		}
		if t.markers>>n&1 != 0 {
			if t.high <= n {
				fail(below)
			}
			t.marked = n
			s.marker = max(s.marker, n)
			if before {
				other.marked = max(other.marked, n)
			}
		}
	}
	if t.rec != 0 && t.rec.isFrontier() {
		x.judge(s, t.rec.frontier(), t.markers != 0, fail)
	}
}

// end commits the transaction of p, and answers.
func (x *exact) end(s *exactState, p int) {
	x.commit(s, p)
	if by := s.holder[p]; by == byTool {
		s.tool++ // it hears of it
	} else if by == 1 || by == 2 {
		if w := &s.in[by-1].w[p]; w.phase == sent {
			w.phase, w.until[1] = committed, s.n[p]
		}
	}
}

// judge checks that a frontier passes nothing but what is delivered, or recorded as lost.
func (x *exact) judge(s *exactState, f frontier, completes bool, fail func(uint8)) {
	if f.moving || f.reset || f.sought && !f.told {
		return // the marker of the move is still to come
	}
	if n := f.current; n != 0 && s.from > n {
		s.from = n // the first segment after a seek
	}
	if completes && s.from > f.completed {
		s.from = 1
		for s.from < x.segments && s.events&x.of(s.from) == 0 {
			s.from++ // a bundle right after a seek
		}
	}
	for n := s.from; n <= f.completed; n++ {
		if s.events&x.of(n) != x.of(n) && f.gaps>>(n-1)&1 == 0 {
			fail(skipped)
		}
	}
}

// broker appends what brokers and retention may do.
func (x *exact) broker(s *exactState, to []step[exactState]) []step[exactState] {
	mask := uint8(1)<<(2*s.removed) - 1 // piece by piece, all of the segment before it is gone first
	if x.retention && s.removed+x.keep < x.segments && s.chunks&mask == mask {
		t := *s
		t.removed++
		if !x.pieces {
			t.chunks |= chunkBit(t.removed, 0) | chunkBit(t.removed, 1)
		}
		to = append(to, step[exactState]{t, say("retention removes segment %d", t.removed), false})
	}
	for shard := range uint8(2) {
		goes := x.chunkGoes && shard == 1 && s.removed == 0
		if n := max(s.removed, 1); (goes || x.pieces && s.removed > 0) && !s.lacks(n, shard) {
			t := *s
			t.chunks |= chunkBit(n, shard)
			l := say("retention removes the chunk of shard %d of segment %d", shard, n)
			to = append(to, step[exactState]{t, l, false})
		}
	}
	if x.finalizes && !s.final {
		t := *s
		t.final = true
		to = append(to, step[exactState]{t, say("the service finalizes segment %d", x.segments), true})
	}
	if x.grow && s.parts == 1 {
		t := *s
		t.parts = 2
		to = append(to, step[exactState]{t, say("an operator adds a partition to the state topic"), false})
	}
	for p := range 2 {
		if !s.txn[p].open {
			continue
		}
		if s.txn[p].ending {
			t := *s
			x.end(&t, p)
			to = append(to,
				step[exactState]{t, s.txn[p].rec.what().with("the broker commits lease %d: ", uint8(p)), true})
		}
		used := s.holder[p] == byTool || s.holder[p] <= 2 && s.holder[p] > 0 && s.in[s.holder[p]-1].w[p].phase >= sent
		if !used || s.faults > 0 {
			t := *s
			if used {
				t.faults--
			}
			t.fence(p, byFence)
			l := say("the broker ends the transaction of lease %d, which timed out", uint8(p))
			to = append(to, step[exactState]{t, l, !used})
		}
	}
	return to
}
