package envelope

import (
	"encoding/binary"
	"unicode/utf8"
)

// appendAvroString appends s as Avro's string.
func appendAvroString(b []byte, s string) []byte {
	if valid(s) {
		return append(appendSize(b, len(s)), s...)
	}
	from := len(b)
	return insertSize(appendValid(b, s), from)
}

// valid reports whether s is UTF-8. Strings of the feed are mostly ASCII and longer than a word. For those it takes
// half the time of utf8.ValidString, which reads the bytes after the last whole word one by one.
func valid(s string) bool {
	const high = 0x8080808080808080
	var seen uint64
	for i := 0; i < len(s)-8; i += 8 {
		seen |= binary.LittleEndian.Uint64([]byte(s[i : i+8]))
	}
	if len(s) >= 8 && (seen|binary.LittleEndian.Uint64([]byte(s[len(s)-8:])))&high == 0 {
		return true
	}
	return utf8.ValidString(s)
}

// appendSize appends a size; most are below 64, and one byte.
func appendSize(b []byte, n int) []byte {
	if n < 64 {
		return append(b, byte(n<<1))
	}
	return binary.AppendVarint(b, int64(n))
}

// appendValid appends s with U+FFFD for each byte that is not UTF-8, as in JSON. Readers fail on such bytes.
func appendValid(b []byte, s string) []byte {
	if valid(s) {
		return append(b, s...)
	}
	for _, r := range s {
		b = utf8.AppendRune(b, r)
	}
	return b
}

// insertSize puts the size of what follows from in front of it.
func insertSize(b []byte, from int) []byte {
	var size [binary.MaxVarintLen64]byte
	n := binary.PutVarint(size[:], int64(len(b)-from))
	b = append(b, size[:n]...) // for the room
	copy(b[from+n:], b[from:len(b)-n])
	copy(b[from:], size[:n])
	return b
}
