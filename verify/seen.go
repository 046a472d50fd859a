package verify

// Seen remembers events. With DELIVERY=at_least_once, the promises about the order of events and about markers hold for
// the first record of each event. Seen keeps 40 to 60 bytes per event.
type Seen struct{ forms map[id]form }

// NewSeen returns a Seen without events.
func NewSeen() *Seen { return &Seen{forms: map[id]form{}} }

// First reports whether a record is the first of its event, as a value or as the tombstone after it. It also returns
// true for markers, and for records that do not identify an event.
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
