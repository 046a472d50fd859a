package verify

// Unique checks that no event is repeated, on any topic, partition or key, and no key within a scan. An event
// is identified by its id, or without one (a deletion with HEADERS=none) by its key and updated. With
// DELETES=both an event may come as a value and then as a tombstone. After a seek all events may be repeated.
// Unique keeps 40 to 85 bytes per event; Progress keeps none.
type Unique struct {
	failures
	rounds rounds
	first  map[id]spot
	again  int64
}

// spot is where the first record of an event is, for the failure of a repeated one.
type spot struct {
	offset    int64
	partition int32
	forms     form
	round     uint16
}

// NewUnique returns a Unique.
func NewUnique() *Unique { return &Unique{first: map[id]spot{}} }

// Again returns how many events are repeated after a seek.
func (u *Unique) Again() int64 { return u.again }

// Note implements Validator.
func (u *Unique) Note(r Record) {
	round := u.rounds.at(&r)
	if r.Key == nil {
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
	at, again := u.first[x]
	switch f := formOf(&r); {
	case !again:
		u.first[x] = spot{r.Offset, r.Partition, f, round}
	case at.round != round:
		u.again++
		u.first[x] = spot{r.Offset, r.Partition, f, round}
	case at.forms&f != 0 || f == asValue: // a tombstone follows its value
		what := "event " + string(text)
		if scan, ok := r.scan(); ok {
			what = "the row of scan " + string(scan)
		}
		u.add(&r, "%s is repeated; first on partition %d at offset %d", what, at.partition, at.offset)
	default:
		at.forms |= f
		u.first[x] = at
	}
}
