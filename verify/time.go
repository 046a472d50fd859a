package verify

// Time checks that the timestamp of each record is that of its event: the header updated, or, without headers, the
// value. Where the broker sets the timestamps, or neither says a time, there is nothing to check. It keeps nothing.
type Time struct{ failures }

// NewTime returns a Time.
func NewTime() *Time { return &Time{} }

// Note implements Validator.
func (v *Time) Note(r Record) {
	if r.Key == nil || r.Millis == 0 {
		return
	}
	updated, ok := parseClock(r.updated())
	if !ok {
		return
	}
	v.checked++
	if uint64(r.Millis) != updated.wall/1e6 {
		v.add(&r, "the record's timestamp is %d, that of its event %d", r.Millis, updated.wall/1e6)
	}
}
