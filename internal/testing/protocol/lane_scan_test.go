//go:build !race

package protocol

// scan has the steps of a listing and of a sweep. The first scan of a bridge has no sweep, and one round.
func (t *laneTurn) scan() {
	s := t.s
	if s.moving {
		return
	}
	all := s.listed == [laneBlobs]bool{true, true}
	switch s.phase {
	case laneIdle:
		if s.scans > 0 && s.bar != laneNever {
			t.add(true, say("a scan is requested"), func(s *laneState) { s.scans--; s.phase = laneDelivers })
		}
	case laneDelivers:
		t.add(true, say("a round begins"), func(s *laneState) { s.phase, s.sweeps = laneLists, all })
	case laneLists:
		if s.page == [laneBlobs]found{} && (s.head == [laneBlobs]found{} || t.oldHeads) {
			t.endRound(all)
		}
		for b := range uint8(laneBlobs) {
			t.list(b)
		}
		t.judge()
	}
	if s.phase != laneIdle && !s.initial && s.cancels > 0 {
		t.add(false, say("the scan is cancelled"), func(s *laneState) { s.cancels--; s.endScan() })
	}
	if s.phase != laneIdle && !s.initial && all && !s.have {
		if s.judged < s.toJudge() {
			t.add(true, say("the sweep reads lane %d", s.judged), func(s *laneState) {
				s.lanes, s.have = s.toJudge(), true
				for b := range uint8(laneBlobs) {
					home := laneOf[b][s.count]
					s.suspects[b] = s.suspect(b, s.judged) && !(t.once && s.judged != home && s.suspect(b, home))
				}
			})
		}
	}
}

// toJudge is how many lanes the sweep has: as many as there were when the writer began it.
func (s *laneState) toJudge() uint8 {
	if s.lanes > 0 {
		return s.lanes
	}
	return s.count
}

func (t *laneTurn) endRound(all bool) {
	s := t.s
	switch {
	case all && (s.initial || s.judged >= s.toJudge()):
		t.add(true, say("the scan ends"), func(s *laneState) {
			if s.initial {
				s.bar = s.ends
			}
			for b := range laneBlobs {
				if s.missing[b] {
					s.missing[b], s.right = false, s.clock+1 // what the sweep leaves to the feed is of now at the latest
				}
			}
			s.endScan()
		})
	case !s.initial:
		t.add(true, say("the round ends"), func(s *laneState) { s.phase = laneDelivers })
	}
}

// list asks for the page of a blob, and commits its row.
func (t *laneTurn) list(b uint8) {
	s := t.s
	switch {
	case s.listed[b]:
	case !s.page[b].held:
		t.add(true, say("a page shows blob %d", b), func(s *laneState) {
			s.page[b] = found{true, s.clock, s.truth(b, s.clock)}
		})
	default:
		t.add(true, say("commits the page of blob %d", b), func(s *laneState) {
			p := s.page[b]
			s.page[b], s.listed[b], s.ends = found{}, true, max(s.ends, p.at)
			if p.content == 0 {
				return
			}
			lane, updated := laneOf[b][s.count], laneTick*p.at+2
			if s.initial {
				updated = laneTick
			}
			s.row[lane] = s.row[lane] || !s.initial
			s.write(b, laneRecord{lane: lane, updated: updated, content: p.content})
		})
	}
}

// judge asks for the blobs of suspects, and commits what follows from the answers.
func (t *laneTurn) judge() {
	s := t.s
	switch {
	case !s.have || !s.sweeps:
	case s.suspects == [laneBlobs]bool{}:
		t.add(true, say("no suspect is left in lane %d", s.judged), func(s *laneState) {
			s.have = false
			s.judged++
		})
	case s.head == [laneBlobs]found{}:
		t.add(true, say("the account is asked for the suspects of lane %d", s.judged), func(s *laneState) {
			for b := range uint8(laneBlobs) {
				if s.suspects[b] {
					s.head[b] = found{true, s.clock, s.truth(b, s.clock)}
				}
			}
		})
	default:
		t.add(true, say("commits the answers for lane %d", s.judged), func(s *laneState) {
			for b := range uint8(laneBlobs) {
				h := s.head[b]
				if !h.held {
					continue
				}
				s.ends = max(s.ends, h.at)
				lane := s.judged
				if t.today {
					lane = laneOf[b][s.count]
				}
				if h.content == 0 {
					s.write(b, laneRecord{lane: lane, updated: laneTick*h.at + 2})
				}
			}
			s.judged, s.have = s.judged+1, false
			s.suspects, s.head = [laneBlobs]bool{}, [laneBlobs]found{}
		})
	}
}
