package verify

import (
	"cmp"
	"fmt"
)

// position is the position of an event in the feed, from the header position, as comparable numbers.
type position struct {
	segment uint64 // YYYYMMDDHHMM
	shard   uint64
	chunk   uint64
	offset  uint64
	index   uint64
}

// parsePosition parses 2020/05/27/1500/00/00000/1488/3: segment, shard, chunk, offset of the block, index in it.
func parsePosition(b []byte) (p position, ok bool) {
	const segment = len("2020/05/27/1500")
	if len(b) <= segment || b[4] != '/' || b[7] != '/' || b[10] != '/' || b[segment] != '/' {
		return p, false
	}
	for i, c := range b[:segment] {
		switch {
		case i == 4 || i == 7 || i == 10:
		case c < '0' || c > '9':
			return p, false
		default:
			p.segment = p.segment*10 + uint64(c-'0')
		}
	}
	rest := b[segment+1:]
	for i, to := range [...]*uint64{&p.shard, &p.chunk, &p.offset, &p.index} {
		n := 0
		if *to, n = number(rest); n == 0 {
			return p, false
		}
		rest = rest[n:]
		if i == 3 {
			break
		}
		if len(rest) == 0 || rest[0] != '/' {
			return p, false
		}
		rest = rest[1:]
	}
	return p, len(rest) == 0
}

// inShard compares within a shard of a segment.
func (p position) inShard(o position) int {
	return cmp.Or(cmp.Compare(p.chunk, o.chunk), cmp.Compare(p.offset, o.offset), cmp.Compare(p.index, o.index))
}

// clock is a hybrid logical clock's time.
type clock struct{ wall, logical uint64 }

// parseClock parses "<nanoseconds>.<10 digits>".
func parseClock(b []byte) (c clock, ok bool) {
	n, m := 0, 0
	if c.wall, n = number(b); n == 0 || n == len(b) || b[n] != '.' {
		return c, false
	}
	c.logical, m = number(b[n+1:])
	return c, m == 10 && n+1+m == len(b)
}

func (c clock) compare(o clock) int {
	return cmp.Or(cmp.Compare(c.wall, o.wall), cmp.Compare(c.logical, o.logical))
}

// number reads decimal digits, up to 19 of them, and returns how many.
func number(b []byte) (v uint64, n int) {
	for n < len(b) && b[n] >= '0' && b[n] <= '9' {
		if n == 19 {
			return 0, 0
		}
		v = v*10 + uint64(b[n]-'0')
		n++
	}
	return v, n
}

// sequence is a sequencer: up to 48 hex digits, of any case, padded on the left.
type sequence [3]uint64

func parseSequence(b []byte) (s sequence, ok bool) {
	if len(b) == 0 || len(b) > 48 {
		return s, false
	}
	for i, c := range b {
		var v byte
		switch {
		case c >= '0' && c <= '9':
			v = c - '0'
		case c >= 'a' && c <= 'f':
			v = c - 'a' + 10
		case c >= 'A' && c <= 'F':
			v = c - 'A' + 10
		default:
			return s, false
		}
		word := &s[2-(len(b)-1-i)/16]
		*word = *word<<4 | uint64(v)
	}
	return s, true
}

func (s sequence) compare(o sequence) int {
	return cmp.Or(cmp.Compare(s[0], o[0]), cmp.Compare(s[1], o[1]), cmp.Compare(s[2], o[2]))
}

func (c clock) String() string { return fmt.Sprintf("%d.%010d", c.wall, c.logical) }
