package ocf

import "errors"

var (
	errVarint = errors.New("varint is longer than 10 bytes or overflows")
	errEnd    = errors.New("the data ends inside a value")
)

// long reads a zigzag varint. Overlong forms are fine: the service writes counts and sizes as 10 bytes always.
// n is 0 if s ends inside it, and -1 if it is no varint.
func long[T string | []byte](s T) (v int64, n int) {
	if len(s) > 0 && s[0] < 0x80 { // most are one byte
		b := uint64(s[0])
		return int64(b>>1) ^ -int64(b&1), 1
	}
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
	if len(s) >= 10 {
		return 0, -1
	}
	return 0, 0
}

// reader walks over the data of a block. It is a value: a failed read leaves it where it was.
type reader struct{ s string }

func (r *reader) long() (int64, error) {
	v, n := long(r.s)
	switch {
	case n > 0:
		r.s = r.s[n:]
		return v, nil
	case n < 0:
		return 0, errVarint
	}
	return 0, errEnd
}

func (r *reader) take(n int64) (string, error) {
	if n < 0 || n > int64(len(r.s)) {
		return "", errEnd
	}
	s := r.s[:n]
	r.s = r.s[n:]
	return s, nil
}

func (r *reader) string() (string, error) {
	n, err := r.long()
	if err != nil {
		return "", err
	}
	return r.take(n)
}
