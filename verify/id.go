package verify

import (
	"encoding/hex"
	"hash/maphash"
)

// id is an event's id in 16 bytes: the UUID if it is one in lower case, else two hashes. The probability of a collision
// among a million ids is about 10^-26.
type id [16]byte

var seeds = [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}

func idOf(text []byte) id {
	if x, ok := parseUUID(text); ok {
		return x
	}
	return hashed(text)
}

// hashed is a text in 16 bytes.
func hashed(text []byte) (x id) {
	for i, seed := range seeds {
		h := maphash.Bytes(seed, text)
		for j := range 8 {
			x[8*i+j] = byte(h >> (8 * j))
		}
	}
	return x
}

// parseUUID accepts only texts that uuid returns, so that different texts stay different.
func parseUUID(text []byte) (x id, ok bool) {
	if len(text) != 36 {
		return x, false
	}
	n := 0
	for i, c := range text {
		if i == 8 || i == 13 || i == 18 || i == 23 {
			if c != '-' {
				return x, false
			}
			continue
		}
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		default:
			return x, false
		}
		x[n/2] = x[n/2]<<4 | c
		n++
	}
	return x, true
}

// uuid returns the text of an id that was a UUID.
func (x id) uuid() string {
	h := hex.EncodeToString(x[:])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

// seed is shared, so that two validators agree.
var seed = maphash.MakeSeed()
