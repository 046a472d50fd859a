package ocf

import (
	"errors"
	"math"
	"unsafe"
)

var (
	errEnd    = errors.New("the data ends inside a value")
	errUnion  = errors.New("the union has no such branch")
	errEnum   = errors.New("the enum has no such symbol")
	errCount  = errors.New("the count or size of a map or array is impossible")
	errBudget = errors.New("the values are too large for the bytes they come from")
)

// reader walks over the data of a block.
//
// What a schema says takes no bytes (nulls, records of nulls, names of fields in the JSON of an unknown record) would
// cost time and memory without limit: a few hundred bytes of nested record types unfold to 2^30 values. And an entry of
// a map takes two bytes of data and many times that of memory. So all of that spends from a budget, which grows with
// the data and so never stops honest files.
type reader struct {
	data   string
	at     int // data before it is read; an index, as moving the string's begin costs a write barrier for each value
	budget int
}

// What a value costs of the budget, besides its text: the memory of its place in a slice, twice, since a slice that
// grows is copied.
const (
	eventCost  = int(unsafe.Sizeof(Event{}))
	pairCost   = 2 * int(unsafe.Sizeof(Pair{}))
	changeCost = 2 * int(unsafe.Sizeof(PropertyChange{}))
	setCost    = 2 * int(unsafe.Sizeof(TagSet{}))
)

// shortText is a text of the schema, a symbol or a name, that costs nothing where it is used. Events share longer ones,
// too, but what is made of events holds a copy for each.
const shortText = 64

func newReader(data string, limit int) reader {
	return reader{data: data, budget: min(1<<20+256*len(data), max(limit, 1<<20))}
}

// spend takes n from the budget.
func (r *reader) spend(n int) error {
	if r.budget -= n; r.budget < 0 {
		return errBudget
	}
	return nil
}

func (r *reader) rest() string { return r.data[r.at:] }

func (r *reader) long() (int64, error) {
	if r.at < len(r.data) && r.data[r.at] < 0x80 { // most are one byte
		b := uint64(r.data[r.at])
		r.at++
		return int64(b>>1) ^ -int64(b&1), nil
	}
	return r.longer()
}

// short returns the value at hand if it is one byte and not negative, and -1 otherwise; it does not pass over it. It is
// inlined where most values are such: lengths of strings, branches of unions, indexes of symbols.
func (r *reader) short() int {
	if r.at < len(r.data) && r.data[r.at]&0x81 == 0 {
		return int(r.data[r.at] >> 1)
	}
	return -1
}

func (r *reader) longer() (int64, error) {
	v, n := long(r.rest())
	switch {
	case n > 0:
		r.at += n
		return v, nil
	case n < 0:
		return 0, errVarint
	}
	return 0, errEnd
}

func (r *reader) take(n int64) (string, error) {
	if n < 0 || n > int64(len(r.data)-r.at) {
		return "", errEnd
	}
	from := r.at
	r.at += int(n)
	return r.data[from:r.at], nil
}

// string is half of all the work. Lengths of one and two bytes, all there are in practice, don't leave it.
func (r *reader) string() (string, error) {
	s := r.data[r.at:]
	if len(s) > 1 {
		u, n := uint(s[0]), 1
		if u >= 0x80 {
			u, n = u&0x7f|uint(s[1])<<7, 2
		}
		// Bit 14 is set if the length goes on; bit 0 if it is negative.
		if end := n + int(u>>1); u&(1<<14|1) == 0 && end <= len(s) {
			r.at += end
			return s[n:end], nil
		}
	}
	n, err := r.long()
	if err != nil {
		return "", err
	}
	return r.take(n)
}

func (r *reader) symbol(s *schema) (string, error) {
	i, err := r.long()
	if err != nil {
		return "", err
	}
	if i < 0 || i >= int64(len(s.symbols)) {
		return "", errEnum
	}
	return s.symbols[i], r.spendText(s.symbols[i])
}

// spendText pays for a text of the schema.
func (r *reader) spendText(text string) error {
	if len(text) <= shortText {
		return nil
	}
	return r.spend(len(text))
}

// text reads a value of a type that isText; null is "".
func (r *reader) text(s *schema) (string, error) {
	switch s.kind {
	case kString:
		return r.string()
	case kEnum:
		return r.symbol(s)
	case kUnion:
		b, err := r.choose(s)
		if err != nil {
			return "", err
		}
		return r.text(b)
	}
	return "", nil
}

func (r *reader) choose(s *schema) (*schema, error) {
	i, err := r.branch(len(s.union))
	if err != nil {
		return nil, err
	}
	return s.union[i], nil
}

// branch reads which of a union's branches follows.
func (r *reader) branch(of int) (int, error) {
	i, err := r.long()
	if err == nil && (i < 0 || i >= int64(of)) {
		err = errUnion
	}
	return int(i), err
}

// count reads how many entries of a map or array follow; 0 is its end. The count may be a lie. That is harmless:
// nothing is allocated by it, entries take bytes or budget, and both end.
func (r *reader) count() (int64, error) {
	n, err := r.long()
	if err != nil || n >= 0 {
		return n, err
	}
	// A negative count is followed by the size in bytes. It lets one skip the entries; we walk over them to check them.
	size, err := r.long()
	if err != nil {
		return 0, err
	}
	if n == math.MinInt64 || size < 0 || size > int64(len(r.data)-r.at) {
		return 0, errCount
	}
	return -n, nil
}

var errVarint = errors.New("varint is longer than 10 bytes or overflows")

// long reads a zigzag varint. Overlong forms are fine: the service writes counts and sizes as 10 bytes always.
// n is 0 if s ends inside it, and -1 if it is not a varint.
func long[T string | []byte](s T) (v int64, n int) {
	var u uint64
	for i := 0; i < len(s); i++ {
		b := s[i]
		if i == 9 && b > 1 {
			return 0, -1
		}
		u |= uint64(b&0x7f) << (7 * i)
		if b < 0x80 {
			return int64(u>>1) ^ -int64(u&1), i + 1
		}
	}
	return 0, 0
}

// entries calls read for every entry of a map.
func (r *reader) entries(read func() error) error {
	for {
		n, err := r.count()
		if err != nil || n == 0 {
			return err
		}
		for ; n > 0; n-- {
			if err := read(); err != nil {
				return err
			}
		}
	}
}

// pairs reads a map of texts into to.
func (r *reader) pairs(s *schema, to *[]Pair) error {
	*to = (*to)[:0]
	return r.entries(func() (err error) {
		var p Pair
		if p.Name, err = r.string(); err != nil {
			return err
		}
		if s.items.kind == kString {
			p.Value, err = r.string()
		} else {
			p.Value, err = r.text(s.items)
		}
		if err != nil {
			return err
		}
		*to = append(*to, p)
		return r.spend(pairCost)
	})
}

// ignorePairs skips a map of strings.
func (r *reader) ignorePairs() error {
	for {
		n, err := r.count()
		if err != nil || n == 0 {
			return err
		}
		if n > int64(len(r.data)) {
			return errEnd
		}
		for n *= 2; n > 0; n-- {
			if size := r.short(); size >= 0 && size < len(r.data)-r.at {
				r.at += 1 + size
				continue
			}
			if _, err = r.string(); err != nil {
				return err
			}
		}
	}
}

// properties reads a map of records that are a PropertyChange.
func (r *reader) properties(s *schema, to *[]PropertyChange) error {
	*to = (*to)[:0]
	return r.entries(func() (err error) {
		var c PropertyChange
		if c.Name, err = r.string(); err != nil {
			return err
		}
		for _, f := range s.items.fields {
			at := &c.Previous
			if f.name == "current" {
				at = &c.Current
			}
			if *at, err = r.text(f.typ); err != nil {
				return err
			}
		}
		*to = append(*to, c)
		return r.spend(changeCost)
	})
}

// tags reads a map of maps of texts.
func (r *reader) tags(s *schema, to *[]TagSet) error {
	sets := (*to)[:0]
	err := r.entries(func() (err error) {
		if err = r.spend(setCost); err != nil {
			return err
		}
		// A set that was here before keeps the capacity of its tags.
		if len(sets) < cap(sets) {
			sets = sets[:len(sets)+1]
		} else {
			sets = append(sets, TagSet{})
		}
		t := &sets[len(sets)-1]
		if t.Name, err = r.string(); err != nil {
			return err
		}
		return r.pairs(s.items, &t.Tags)
	})
	*to = sets
	return err
}

// skip skips a value without allocating.
func (r *reader) skip(s *schema, depth int) error {
	if depth > maxDepth {
		return errDeep
	}
	if err := r.spend(1); err != nil {
		return err
	}
	var err error
	switch s.kind {
	case kBoolean:
		_, err = r.take(1)
	case kInt:
		_, err = r.long()
	case kFloat:
		_, err = r.take(4)
	case kDouble:
		_, err = r.take(8)
	case kString:
		_, err = r.string()
	case kFixed:
		_, err = r.take(s.size)
	case kEnum:
		_, err = r.symbol(s)
	case kUnion:
		var b *schema
		if b, err = r.choose(s); err == nil {
			err = r.skip(b, depth+1)
		}
	case kRecord:
		for _, f := range s.fields {
			if err = r.skip(f.typ, depth+1); err != nil {
				return err
			}
		}
	case kArray, kMap:
		return r.skipEntries(s, depth)
	}
	return err
}

func (r *reader) skipEntries(s *schema, depth int) error {
	return r.entries(func() error {
		if s.kind == kMap {
			if _, err := r.string(); err != nil {
				return err
			}
		}
		return r.skip(s.items, depth+1)
	})
}
