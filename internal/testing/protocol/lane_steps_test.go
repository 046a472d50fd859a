//go:build !race

package protocol

// laneRules are rules for growing topics. All but marked and today are mistakes.
type laneRules struct {
	marked bool // new counts are taken only in a transaction that writes a marker to every lane
	today  bool // a sweep writes its deletion to the lane where the key belongs now

	advances bool // counts are taken where a segment is named
	barless  bool // counts are taken before the end of the first scan, without a marker
	noHold   bool // events are delivered during rounds
	oldHeads bool // answers of one round are written in a later one
	untold   bool // counts are taken with a marker that a seek repeats
	once     bool // a sweep asks for a key only where it belongs, if it lives there

	// The situation.
	first                         bool // it begins with an initial scan; else with an event of the first blob
	losses, seeks, scans, cancels uint8
	grows                         uint8 // up to so many partitions
	both                          bool  // both blobs change
}

const (
	laneLie      = "I6: what a marker promises is not what the account was"
	laneDiverged = "everything is delivered, and a table that is built marker by marker is not the account"
	laneHighest  = "everything is delivered, and the records with the highest updated are not the account"
	laneLate     = "I6: a record at or below a marker, which no seek has announced in its lane"
	laneSplit    = "I5: between two markers a key is in two partitions"
)

func (r laneRules) start() laneState {
	s := laneState{
		clock: 1, real: 1, count: 1, losses: r.losses, seeks: r.seeks, scans: r.scans, cancels: r.cancels,
		promised: laneNever,
	}
	s.changes[1] = change(0, false)
	s.fed[0], s.read[0] = 1, 1
	if r.first {
		s.initial, s.phase, s.bar = true, laneLists, laneNever
		return s
	}
	s.current = true
	s.write(0, laneRecord{updated: laneTick, content: 1})
	return s
}

// delivered reports whether the topic has to be the account.
func (r laneRules) delivered(s *laneState) bool {
	for b := range uint8(laneBlobs) {
		if s.read[b] != s.events(b, s.clock) || s.missing[b] {
			return false
		}
	}
	return !s.moving && s.phase != laneLists && s.bar != laneNever
}

// settled also holds if something is lost, and nobody asks for a scan any more.
func (r laneRules) settled(s *laneState) bool {
	return r.delivered(s) || s.missing != [laneBlobs]bool{} && s.scans == 0 && s.phase == laneIdle && !s.moving
}

func (r laneRules) stuck(*laneState) string { return deadEnd }

func (r laneRules) broken(s *laneState) string {
	switch {
	case s.lies:
		return laneLie
	case s.late:
		return laneLate
	}
	settled := r.delivered(s)
	for b := range uint8(laneBlobs) {
		now := s.truth(b, s.clock)
		switch {
		case s.split(b):
			return laneSplit
		case settled && !s.aligned(b, laneNever).only(now):
			return laneDiverged
		case settled && !s.highest(b).only(now):
			return laneHighest
		}
	}
	return ""
}

// laneTurn collects the steps from a state.
type laneTurn struct {
	laneRules
	s  *laneState
	to []step[laneState]
}

func (t *laneTurn) add(progress bool, l label, do func(*laneState)) {
	next := *t.s
	do(&next)
	next.normal()
	t.to = append(t.to, step[laneState]{next, l, progress})
}

func (r laneRules) steps(s *laneState, to []step[laneState]) []step[laneState] {
	t := &laneTurn{r, s, to}
	t.account()
	t.keeper()
	t.delivery()
	t.scan()
	return t.to
}

func (t *laneTurn) account() {
	s := t.s
	for b := range uint8(laneBlobs) {
		if s.clock < laneChanges && (b == 0 || t.both) {
			t.add(true, say("blob %d is written", b), func(s *laneState) { s.put(b, false) })
			if s.truth(b, s.clock) != 0 {
				t.add(true, say("blob %d is deleted", b), func(s *laneState) { s.put(b, true) })
			}
		}
		if s.fed[b] < s.events(b, s.clock) {
			t.add(true, say("the feed has event %d of blob %d", s.fed[b], b), func(s *laneState) { s.fed[b]++ })
		}
	}
	if s.real < t.grows {
		t.add(false, say("the topic grows"), func(s *laneState) { s.real++ })
	}
	if s.lanes > 0 || s.page != [laneBlobs]found{} || s.head != [laneBlobs]found{} {
		t.add(false, say("crash"), (*laneState).forget)
	}
}

func (s *laneState) put(b uint8, deleted bool) {
	s.clock++
	s.changes[s.clock] = change(b, deleted)
}

// barred reports whether there may be no marker yet.
func (s *laneState) barred() bool {
	return s.bar == laneNever || s.bar > 0 && (s.promised == laneNever || s.promised < s.bar)
}

// keeper moves the frontier.
func (t *laneTurn) keeper() {
	s := t.s
	if s.moving {
		t.add(true, say("the seek ends"), func(s *laneState) {
			s.moving = false
			switch promises := s.promised != laneNever; {
			case promises && !s.barred():
				s.mark(s.promised, s.real, true)
			case !t.marked && !s.barred():
				s.count = s.real
			}
		})
		return
	}
	if s.seeks > 0 && s.bar != laneNever {
		for to := s.floor; to <= s.complete(); to++ {
			t.add(false, say("seek to %d", to), func(s *laneState) {
				s.seeks--
				s.moving, s.current = true, false
				for b := range uint8(laneBlobs) {
					s.read[b] = min(s.read[b], s.events(b, to))
				}
				s.endScan()
			})
		}
	}
	if s.phase == laneLists && !t.noHold {
		return
	}
	if !s.current {
		t.add(true, say("names a segment"), func(s *laneState) {
			s.current = true
			if t.advances && !s.barred() {
				s.count = s.real
			}
		})
		return
	}
	for at := uint8(1); at <= s.complete(); at++ {
		if s.promised != laneNever && at < s.promised && at < s.complete() {
			continue // the same marker again
		}
		t.add(true, say("completes a segment up to %d", at), func(s *laneState) {
			s.current = false
			repeats := s.promised != laneNever && at <= s.promised
			if s.promised != laneNever {
				at = max(at, s.promised)
			}
			if s.bar != laneNever && at >= s.bar {
				count := s.real
				if repeats && !t.untold {
					count = s.count
				}
				s.mark(at, count, false)
			}
			if t.barless && s.barred() {
				s.count = s.real
			}
		})
	}
}

func (t *laneTurn) delivery() {
	s := t.s
	if !s.current || s.moving || s.phase == laneLists && !t.noHold {
		return
	}
	for b := range uint8(laneBlobs) {
		if s.read[b] >= s.fed[b] {
			continue
		}
		at, content := s.event(b, s.read[b])
		lane := laneOf[b][s.count]
		t.add(true, say("event of blob %d at %d goes to lane %d", b, at, lane), func(s *laneState) {
			s.read[b]++
			s.write(b, laneRecord{lane: lane, updated: laneTick * at, content: content})
		})
		if s.losses > 0 && s.phase == laneIdle {
			t.add(false, say("event of blob %d at %d is lost", b, at), func(s *laneState) {
				s.losses--
				s.read[b]++
				s.missing[b], s.floor = true, at
			})
		}
	}
}
