package envelope

import (
	"encoding/binary"
	"unicode/utf8"
)

const hex = "0123456789abcdef"

// unescaped says which bytes need no escape in a JSON string.
var unescaped = func() (t [256]bool) {
	for c := 0x20; c < utf8.RuneSelf; c++ {
		t[c] = c != '"' && c != '\\'
	}
	return t
}()

// allPlain says whether the eight bytes of x all stand for themselves. In one of the terms a byte's highest bit is set
// by what is not plain; above ASCII it is set in one of the last two. A byte borrows from the next only if it is not
// plain itself.
func allPlain(x uint64) bool {
	const each, high = 0x0101010101010101, 0x8080808080808080
	quote, backslash := x^each*'"', x^each*'\\'
	return ((x-each*0x20)|(quote-each)|(backslash-each))&high == 0
}

// appendString appends s as a JSON string.
func appendString(b []byte, s string) []byte {
	b = append(b, '"')
	start := 0
	for i := 0; ; {
		for len(s)-i >= 8 && allPlain(binary.LittleEndian.Uint64([]byte(s[i:i+8]))) { // mostly all of it
			i += 8
		}
		for i < len(s) && unescaped[s[i]] {
			i++
		}
		if i == len(s) {
			break
		}
		c := s[i]
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			switch {
			case r == utf8.RuneError && n == 1:
				b = append(append(b, s[start:i]...), `\ufffd`...)
			case r == '\u2028' || r == '\u2029':
				b = append(append(b, s[start:i]...), '\\', 'u', '2', '0', '2', hex[r&0xf])
			default:
				i += n
				continue
			}
			i += n
			start = i
			continue
		}
		b = append(b, s[start:i]...)
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, '\\', 'n')
		case '\r':
			b = append(b, '\\', 'r')
		case '\t':
			b = append(b, '\\', 't')
		default:
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&0xf])
		}
		i++
		start = i
	}
	return append(append(b, s[start:]...), '"')
}

// quote turns the JSON from there on into a JSON string. Such text has nothing else to escape than these two.
func quote(b []byte, from int) []byte {
	escaped := func(c byte) bool { return c == '"' || c == '\\' }
	end, more := len(b), 2
	for _, c := range b[from:] {
		if escaped(c) {
			more++
		}
	}
	b = append(b, make([]byte, more)...) // allocates nothing else
	to := len(b) - 1
	b[to] = '"'
	for i := end - 1; i >= from; i-- {
		to--
		if b[to] = b[i]; escaped(b[i]) {
			to--
			b[to] = '\\'
		}
	}
	b[from] = '"'
	return b
}

// appendText appends s as a JSON string, or null if it is empty.
func appendText(b []byte, s string) []byte {
	if s == "" {
		return append(b, "null"...)
	}
	return appendString(b, s)
}

// appendPath appends "container/blob" as a JSON string.
func appendPath(b []byte, container, blob string) []byte {
	b = appendString(b, container)
	if blob == "" {
		return b
	}
	b[len(b)-1] = '/' // the closing quote
	i := len(b)
	b = appendString(b, blob)
	return append(b[:i], b[i+1:]...) // the second opening quote
}

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
