package verify

import "hash/maphash"

// ids is a set of event ids, by hash: 8 bytes each. With 64 bits two of a million ids meet once in 10^7 sets.
type ids struct {
	seed maphash.Seed
	set  map[uint64]bool // true once seen
}

func newIDs() ids { return ids{maphash.MakeSeed(), map[uint64]bool{}} }

func (s ids) key(id []byte) uint64 { return maphash.Bytes(s.seed, id) }

// Unique checks that no event comes twice, by the header ce_id.
type Unique struct {
	failures
	ids ids
}

// NewUnique returns a Unique.
func NewUnique() *Unique { return &Unique{ids: newIDs()} }

// Note implements Validator.
func (u *Unique) Note(r Record) {
	if r.Key == nil {
		return
	}
	id := r.Header("ce_id")
	k := u.ids.key(id)
	if u.ids.set[k] {
		u.add(&r, "event %s comes again", id)
	}
	u.ids.set[k] = true
}

// Complete checks that exactly the expected events come, each at least once.
type Complete struct {
	failures
	ids  ids
	left int
}

// NewComplete returns a Complete that expects nothing yet.
func NewComplete() *Complete { return &Complete{ids: newIDs()} }

// Expect adds an event.
func (c *Complete) Expect(id string) {
	c.ids.set[maphash.String(c.ids.seed, id)] = false
	c.left++
}

// Left is how many expected events have not come yet.
func (c *Complete) Left() int { return c.left }

// Note implements Validator.
func (c *Complete) Note(r Record) {
	if r.Key == nil {
		return
	}
	id := r.Header("ce_id")
	k := c.ids.key(id)
	seen, expected := c.ids.set[k]
	switch {
	case !expected:
		c.add(&r, "event %s was not expected", id)
	case !seen:
		c.ids.set[k] = true
		c.left--
	}
}

// Failures implements Validator.
func (c *Complete) Failures() []Failure {
	f := c.failures
	if c.left > 0 {
		f.add(&Record{}, "%d of %d expected events are missing", c.left, len(c.ids.set))
	}
	return f.Failures()
}
