package verify

// Seen knows which events came already. What DELIVERY=at_least_once promises of the order of events and of markers, it
// promises of events that come for the first time. It keeps some 40 to 60 bytes an event.
type Seen struct{ forms map[id]form }

// NewSeen returns a Seen that knows of none.
func NewSeen() *Seen { return &Seen{forms: map[id]form{}} }

// First reports whether an event comes for the first time: as a value, or as the tombstone behind that. So does a
// marker, and what does not say which event it is of.
func (s *Seen) First(r *Record) bool {
	if r.Key == nil {
		return true
	}
	x, _, ok := r.identity()
	if !ok {
		return true
	}
	forms, f := s.forms[x], formOf(r)
	if forms&f != 0 || f == asValue && forms != 0 {
		return false
	}
	s.forms[x] = forms | f
	return true
}
