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

// rounds counts the seeks on each partition. Promises hold within a round.
type rounds struct{ lanes[uint16] }

// at returns the round of a record.
func (s *rounds) at(r *Record) uint16 {
	switch {
	case r.seeks():
		*s.of(r)++
	case s.all == nil: // mostly
		return 0
	}
	return *s.of(r)
}
