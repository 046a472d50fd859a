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

// bareFirst finds partitions whose first records have no headers (HEADERS=none), because that setting has changed.
type bareFirst struct{ headed map[stretch]bool }

// over reports whether a record is one of those first ones, which can't be judged.
func (b *bareFirst) over(r *Record) bool {
	lane := stretch{r.Topic, r.Partition}
	if b.headed[lane] {
		return false
	}
	if r.bare() {
		return true
	}
	if b.headed == nil {
		b.headed = map[stretch]bool{}
	}
	b.headed[lane] = true
	return false
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
