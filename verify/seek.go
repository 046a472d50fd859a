package verify

// seeks reports whether r is the marker that bridge seek leaves where it has moved the bridge: behind it, on its partition,
// events may come again, and at or below markers.
func (r *Record) seeks() bool {
	if r.Key != nil {
		return false
	}
	_, ok := r.lookup("seek")
	return ok
}

// rounds counts the seeks on each partition. Promises hold within a round.
type rounds struct{ of map[stretch]uint16 }

type stretch struct {
	topic     string
	partition int32
}

// at returns the round of a record.
func (s *rounds) at(r *Record) uint16 {
	switch {
	case r.seeks():
		if s.of == nil {
			s.of = map[stretch]uint16{}
		}
		s.of[stretch{r.Topic, r.Partition}]++
	case s.of == nil: // mostly
		return 0
	}
	return s.of[stretch{r.Topic, r.Partition}]
}
