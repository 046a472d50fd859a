package verify

// seeks reports whether r is the marker of a seek. After it, on its partition, events may be repeated, also at or below
// markers.
func (r *Record) seeks() bool {
	if r.Key != nil {
		return false
	}
	_, ok := r.lookup("seek")
	return ok
}

// rounds numbers the seeks of a topic by what their markers say, so that a partition that was added later has the
// numbers of the others. Promises hold within a round.
type rounds struct {
	lanes[laneRound]
	numbers map[seek]uint16
}

// laneRound is the round of a partition.
type laneRound struct {
	round uint16
	times map[seek]int
}

// seek is what the marker of a seek says. Two seeks to one place may have the same marker: the second one is the second
// on each partition.
type seek struct {
	at     clock
	header string
	times  int
}

// at returns the round of a record.
func (s *rounds) at(r *Record) uint16 {
	switch {
	case r.seeks():
		l, at := s.of(r), seek{header: string(r.Header("seek"))}
		at.at, _ = marker(r) // one without a time is judged by Resolved
		if l.times == nil {
			l.times = map[seek]int{}
		}
		l.times[at]++
		at.times = l.times[at]
		if s.numbers == nil {
			s.numbers = map[seek]uint16{}
		}
		if s.numbers[at] == 0 {
			s.numbers[at] = uint16(len(s.numbers) + 1)
		}
		l.round = s.numbers[at]
	case s.all == nil: // mostly
		return 0
	}
	return s.of(r).round
}
