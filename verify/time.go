package verify

// Time checks that the timestamp of each record is the time of its event, from the header updated, or without headers
// from the value. If the broker sets the timestamps, or the event has no time, nothing is checked. Time keeps nothing.
type Time struct{ failures }

// NewTime returns a Time.
func NewTime() *Time { return &Time{} }

// Note implements Validator.
func (v *Time) Note(r Record) {
	if r.Key == nil || r.Millis == 0 || r.Scanned() {
		return
	}
	updated, ok := parseClock(r.updated())
	if !ok {
		return
	}
	v.checked++
	if uint64(r.Millis) != updated.wall/1e6 {
		v.add(&r, "the record has timestamp %d, but its event %d", r.Millis, updated.wall/1e6)
	}
}
