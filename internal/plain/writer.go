package plain

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"unicode/utf8"
)

// Writer escapes control characters, but for line breaks and tabs. Flush it at the end.
type Writer struct {
	w io.Writer

	mu   sync.Mutex
	torn []byte // the begin of a character whose rest is in the next Write
}

// NewWriter returns a Writer in front of w.
func NewWriter(w io.Writer) *Writer { return &Writer{w: w} }

// Unwrap returns what is behind w, for what must not be escaped.
func (w *Writer) Unwrap() io.Writer { return w.w }

// Write implements io.Writer.
func (w *Writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.torn) == 0 && printable(p) {
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
	if _, err := io.WriteString(w.w, b.String()); err != nil {
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
	return nil
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
