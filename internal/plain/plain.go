// Package plain makes text from outside safe to keep and to show: short, and without control characters.
//
// Blob names, event texts and the words of servers come from others. A name with an escape sequence could repaint an
// operator's terminal, one with a line break could forge a line, and one event's text can be as long as its block.
package plain

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxText is how much of an error is kept, logged or shown.
const MaxText = 2 << 10

// Clip returns s, or its first MaxText bytes and how many were left out.
func Clip(s string) string {
	if len(s) <= MaxText {
		return s
	}
	end := MaxText
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	// A copy: a part of s would keep all of it in memory.
	return fmt.Sprintf("%s… (%d bytes more)", s[:end], len(s)-end)
}

// Line returns s on one line, without control characters, clipped.
func Line(s string) string {
	s = Clip(s)
	var b strings.Builder
	for i, r := range s {
		if r == utf8.RuneError && !strings.HasPrefix(s[i:], "\ufffd") {
			fmt.Fprintf(&b, `\x%02x`, s[i])
			continue
		}
		appendRune(&b, r, false)
	}
	return Clip(b.String())
}

// hidden reports whether r acts on a terminal, or changes how the text around it is read.
func hidden(r rune) bool {
	return unicode.IsControl(r) || r >= '\u2028' && r <= '\u202e' || r >= '\u2066' && r <= '\u2069'
}

// appendRune writes what is hidden as JSON and Go escape it, so that JSON stays the same document.
func appendRune(b *strings.Builder, r rune, lines bool) {
	if !hidden(r) || lines && (r == '\n' || r == '\t') {
		b.WriteRune(r)
		return
	}
	fmt.Fprintf(b, `\u%04x`, r)
}
