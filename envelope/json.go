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
