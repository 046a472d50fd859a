package verify

// Unique checks that no event comes twice, by the header ce_id, on whatever topic, partition or key.
type Unique struct {
	failures
	first map[id]spot
}

// spot is where an event came first. Without it a duplicate tells little.
type spot struct {
	partition int32
	offset    int64
}

// NewUnique returns a Unique.
func NewUnique() *Unique { return &Unique{first: map[id]spot{}} }

// Note implements Validator.
func (u *Unique) Note(r Record) {
	if r.Key == nil {
		return
	}
	text := r.Header("ce_id")
	if len(text) == 0 {
		u.add(&r, "no header ce_id")
		return
	}
	x := idOf(text)
	if at, again := u.first[x]; again {
		u.add(&r, "event %s comes again; first on partition %d at offset %d", text, at.partition, at.offset)
		return
	}
	u.first[x] = spot{r.Partition, r.Offset}
}
