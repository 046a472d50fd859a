package verify

import (
	"hash/maphash"
)

// Unique checks that no event is repeated, on any topic, partition or key, and no key within a scan. An event
// is identified by its id, or without one (a deletion with HEADERS=none) by its key and updated. With
// DELETES=both an event may come as a value and then as a tombstone. After a seek all events may be repeated.
//
// Azure's log can hold an event twice: one id at two positions. Both copies are delivered, and are no failure. One
// position that is delivered twice is. Unique keeps 45 to 95 bytes per event; Order and Partition together keep none.
type Unique struct {
	// Moves says that keys move between partitions, because partitions were added. Then a sweep may find a key in both
	// partitions, and each time writes a deletion to the one where it belongs now: a deletion of a sweep may be
	// repeated.
	Moves bool
	Twice int64 // records that are further copies of an event that the log holds more than once
	Again int64 // events that are repeated after a seek

	failures
	repeats repeats
	rounds  rounds
	first   map[id]spot
	copies  map[id]spot // of events that are in the log more than once, by id and position
}

// repeats are the records that come a second time.
type repeats struct {
	records  int64
	more     bool         // others come more often
	reorders bool         // not as they came first
	lanes    lanes[int64] // the offset of what the last one repeats
}

func (s *repeats) add(r *Record, of *spot) {
	last, again := s.lanes.of(r), formOf(r)<<repeatedForms
	s.more = s.more || of.forms&again != 0
	s.reorders = s.reorders || of.partition != r.Partition || of.offset < *last
	of.forms |= again
	s.records, *last = s.records+1, of.offset
}

// spot is where the first record of an event is, for the failure of a repeated one.
type spot struct {
	offset    int64
	partition int32
	forms     form // and those that came again, shifted
	round     uint16
	position  uint32 // hash of the header; 0 without one
}

// NewUnique returns a Unique.
func NewUnique() *Unique { return &Unique{first: map[id]spot{}, copies: map[id]spot{}} }

// Note implements Validator.
func (u *Unique) Note(r Record) {
	round := u.rounds.at(&r)
	if r.Key == nil || u.Moves && r.Scanned() && r.kind() == deletion {
		return
	}
	x, text, ok := r.identity()
	if !ok {
		if r.bare() {
			u.add(&r, "%s", noID)
		} else {
			u.add(&r, "the record has no header ce_id")
		}
		return
	}
	u.checked++
	position, known := positionOf(&r), u.first
	at, again := known[x]
	if again && at.position != position && position != 0 && at.position != 0 {
		x[0] ^= uint64(position) // the id of a copy
		known = u.copies
		if at, again = known[x]; !again {
			u.Twice++
		}
	}
	now := spot{r.Offset, r.Partition, formOf(&r), round, position}
	switch {
	case !again:
		known[x] = now
	case at.round != round:
		u.Again++
		known[x] = now
	case at.forms&now.forms != 0 || now.forms == asValue: // a tombstone follows its value
		what := "event " + string(text)
		if scan, ok := r.scan(); ok {
			what = "the row of scan " + string(scan)
		}
		hint := ""
		if position == 0 && !r.Scanned() {
			hint = "; without headers, an event that Azure's log holds twice looks the same"
		}
		u.repeats.add(&r, &at)
		known[x] = at
		u.add(&r, "%s is repeated; first on partition %d at offset %d%s", what, at.partition, at.offset, hint)
	default:
		at.forms |= now.forms
		known[x] = at
	}
}

// Doubled returns how many records there are, each twice, and whether both times in the same order. It returns 0 if not
// all come twice.
func (u *Unique) Doubled() (n int64, ordered bool) {
	if s := &u.repeats; !s.more && u.checked == 2*s.records {
		return s.records, !s.reorders
	}
	return 0, false
}

// positionOf returns a hash of where the event is in the log, 0 if the record does not say.
func positionOf(r *Record) uint32 {
	text := r.Header("position")
	if len(text) == 0 {
		return 0
	}
	return uint32(maphash.Bytes(seed, text)) | 1
}

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
