package ocf

import "errors"

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
