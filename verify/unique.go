package verify

// Unique checks that no event comes twice, on whatever topic, partition or key. An event is known by its id; where a record
// has none (HEADERS=none and a deletion), by its key and updated. With DELETES=both an event may come as a value and, after
// that, as a tombstone; and after a seek all may come again. It keeps 40 to 85 bytes an event; Progress keeps none.
type Unique struct {
	failures
	rounds rounds
	first  map[id]spot
	again  int64
}

// spot is where an event came first. Without it a duplicate tells little.
type spot struct {
	offset    int64
	partition int32
	forms     form
	round     uint16
}

// form is how an event came.
type form uint8

const (
	asValue form = 1 << iota
	asTombstone
)

func formOf(r *Record) form {
	if r.Value == nil {
		return asTombstone
	}
	return asValue
}

// NewUnique returns a Unique.
func NewUnique() *Unique { return &Unique{first: map[id]spot{}} }

// Again is how many events came again after a seek.
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
			u.add(&r, "no header ce_id")
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
		u.add(&r, "event %s is repeated; first on partition %d at offset %d", text, at.partition, at.offset)
	default:
		at.forms |= f
		u.first[x] = at
	}
}
