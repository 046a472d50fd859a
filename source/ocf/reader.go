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
