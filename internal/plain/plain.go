// Package plain has the texts that many packages read and write alike: text from outside that is safe to keep and to
// show, numbers and durations for people, errors with a remedy, words for a shell, and names of topics and accounts.
//
// Blob names, event texts and the words of servers come from others. A name with an escape sequence could repaint an
// operator's terminal, one with a line break could forge a line, and one event's text can be as long as its block.
package plain

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// MaxText is how much of an error is kept, logged or shown.
const MaxText = 2 << 10

// Clip returns s without secrets, or its first MaxText bytes and how many were left out.
func Clip(s string) string {
	rest := max(0, len(s)-MaxText-longestSecret) // is not shown anyway, and may be megabytes
	if s = redacted(s[:len(s)-rest]); len(s)+rest <= MaxText {
		return s
	}
	end := MaxText
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	// A copy: a part of s would keep all of it in memory.
	return fmt.Sprintf("%s… (%d bytes more)", s[:end], len(s)+rest-end)
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

// Writer escapes control characters, but for line breaks and tabs. Flush it at the end: that returns the first error of
// a Write, too, for those who print line by line.
type Writer struct {
	w io.Writer

	mu   sync.Mutex
	torn []byte // the begin of a character whose rest is in the next Write
	err  error  // the first of a Write

	colours, within bool // within a line: the last one is not complete
}

// NewWriter returns a Writer in front of w.
func NewWriter(w io.Writer) *Writer { return &Writer{w: w} }

// Colour gives the verdicts that lines begin with a colour. Call it before the first Write.
func (w *Writer) Colour() { w.colours = true }

// Unwrap returns what is behind w, for what must not be escaped.
func (w *Writer) Unwrap() io.Writer { return w.w }

// Write implements io.Writer.
func (w *Writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n, err := w.write(p)
	if w.err == nil {
		w.err = err
	}
	return n, err
}

func (w *Writer) write(p []byte) (int, error) {
	if len(w.torn) == 0 && !w.colours && printable(p) {
		return w.w.Write(p)
	}
	data := append(w.torn, p...)
	w.torn = nil
	var b strings.Builder
	for len(data) > 0 {
		r, n := utf8.DecodeRune(data)
		switch {
		case r == utf8.RuneError && n == 1 && !utf8.FullRune(data):
			w.torn = append([]byte(nil), data...)
			n = len(data)
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, data[0])
		default:
			appendRune(&b, r, true)
		}
		data = data[n:]
	}
	text := b.String()
	if w.colours {
		text = w.paint(text)
	}
	if _, err := io.WriteString(w.w, text); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Flush writes what a last, torn character left.
func (w *Writer) Flush() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	torn := w.torn
	w.torn = nil
	for _, c := range torn {
		if _, err := fmt.Fprintf(w.w, `\x%02x`, c); err != nil {
			return err
		}
	}
	return w.err
}

// printable reports whether p is ASCII that needs no escape, as nearly everything is.
func printable(p []byte) bool {
	for _, c := range p {
		if c != '\n' && c != '\t' && (c < ' ' || c >= 0x7f) {
			return false
		}
	}
	return true
}
