package listing

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"unicode/utf8"
)

// markup reads an XML document tag by tag, in little memory. It knows what listings use: elements, attributes, text,
// CDATA, comments, the five named entities and the numeric ones. It checks the nesting of elements. It rejects document
// types and other entities, which the service never sends. encoding/xml, which is ten times as slow, is its oracle in
// tests.
type markup struct {
	r    io.Reader
	err  error // of r
	buf  []byte
	from int   // buf[from:] is not read yet
	read int64 // bytes read from r

	open []byte // the names of the open elements, one behind the other
	ends []int  // where each of them ends in open

	// What next found. The slices are valid until the next call.
	kind        kind
	name, attrs []byte
	text        []byte // between the tag before and this one, without CDATA marks and entities
}

// kind is the kind of a tag.
type kind uint8

const (
	begin kind = iota
	end
	empty // <name />, which has no end
)

const (
	window   = 32 << 10 // the buffer at first
	maxToken = 1 << 20  // the buffer at most: the longest name has 9 KB
	maxDepth = 32
)

// reset begins with another document.
func (m *markup) reset(r io.Reader) {
	buf := m.buf[:0]
	if cap(buf) != window { // that of a long token is not kept
		buf = make([]byte, 0, window)
	}
	*m = markup{r: r, buf: buf, open: m.open[:0], ends: m.ends[:0], text: m.text[:0]}
}

// damaged returns an error that says where.
func (m *markup) damaged(format string, args ...any) error {
	return &DamageError{At: m.read - int64(len(m.buf)-m.from), What: fmt.Sprintf(format, args...)}
}

// DamageError is an answer that can't be read as a listing. The error of a connection that broke is not one.
type DamageError struct {
	At   int64 // near this byte
	What string
}

func (e *DamageError) Error() string {
	return fmt.Sprintf("reading the listing near byte %d: %s: check proxies on the way to the storage service", e.At,
		e.What)
}

// next reads the next tag and the text before it.
func (m *markup) next() error {
	m.text = m.text[:0]
	for {
		// Mostly there is no text, and no mark.
		if rest := m.buf[m.from:]; len(rest) > 1 && rest[0] == '<' && rest[1] != '!' && rest[1] != '?' {
			m.from++
			return m.tag()
		}
		text, err := m.until("<")
		if err != nil {
			return err
		}
		if err := m.unescape(text); err != nil {
			return err
		}
		mark, err := m.peek(len("![CDATA["))
		switch {
		case err != nil:
			return err
		case bytes.HasPrefix(mark, []byte("!--")):
			m.from += len("!--")
			_, err = m.until("-->")
		case string(mark) == "![CDATA[":
			m.from += len(mark)
			var data []byte
			if data, err = m.until("]]>"); err == nil {
				m.text = appendLines(m.text, data)
			}
		case bytes.HasPrefix(mark, []byte("?")):
			_, err = m.until("?>")
		case bytes.HasPrefix(mark, []byte("!")):
			return m.damaged("unexpected declaration <%.20q", mark)
		default:
			return m.tag()
		}
		if err != nil {
			return err
		}
	}
}

// tag reads a tag behind its first character.
func (m *markup) tag() error {
	raw, n, err := m.untilTagEnd()
	if err != nil {
		return err
	}
	m.kind = begin
	switch {
	case len(raw) > 0 && raw[0] == '/':
		m.kind, raw = end, raw[1:]
		n--
	case len(raw) > 0 && raw[len(raw)-1] == '/':
		m.kind, raw = empty, raw[:len(raw)-1]
		n = min(n, len(raw))
	}
	m.name, m.attrs = raw[:n], raw[n:]
	for len(m.attrs) > 0 && space(m.attrs[0]) {
		m.attrs = m.attrs[1:]
	}
	if n == 0 {
		return m.damaged("a tag without a name")
	}
	switch {
	case m.kind == begin && len(m.ends) == maxDepth:
		return m.damaged("more than %d elements in each other", maxDepth)
	case m.kind == begin:
		m.open = append(m.open, m.name...)
		m.ends = append(m.ends, len(m.open))
	case m.kind == end:
		if len(m.ends) == 0 || !bytes.Equal(m.innermost(), m.name) || len(m.attrs) > 0 {
			return m.damaged("unexpected </%.50s>", m.name)
		}
		m.close()
	}
	return nil
}

// innermost returns the name of the element that was opened last.
func (m *markup) innermost() []byte {
	if last := len(m.ends) - 1; last > 0 {
		return m.open[m.ends[last-1]:]
	}
	return m.open
}

func (m *markup) close() {
	m.open = m.open[:len(m.open)-len(m.innermost())]
	m.ends = m.ends[:len(m.ends)-1]
	m.kind = end
}

// plain returns the text of the element whose tag was read last and reads its end, if both are in the buffer
// and nothing is between them. That is so for almost all elements, and much faster.
func (m *markup) plain() (text []byte, ok bool) {
	rest, name := m.buf[m.from:], m.innermost()
	i := bytes.IndexByte(rest, '<')
	if i < 0 || len(rest) < i+len(name)+len("</>") || rest[i+1] != '/' ||
		rest[i+2+len(name)] != '>' || !bytes.Equal(rest[i+2:i+2+len(name)], name) {
		return nil, false
	}
	m.from += i + len(name) + len("</>")
	m.close()
	return rest[:i], true
}

// leaf returns the text of the element whose tag was read last. Other elements in it are an error.
func (m *markup) leaf() ([]byte, error) {
	if m.kind == empty {
		return nil, nil
	}
	if text, ok := m.plain(); ok {
		if bytes.IndexByte(text, '&') < 0 && bytes.IndexByte(text, '\r') < 0 {
			return text, nil
		}
		m.text = m.text[:0]
		err := m.unescape(text)
		return m.text, err
	}
	if err := m.next(); err != nil {
		return nil, err
	}
	if m.kind != end {
		return nil, m.damaged("unexpected <%.50s>", m.name)
	}
	return m.text, nil
}

// skip reads to the end of the element whose tag was read last.
func (m *markup) skip() error {
	if m.kind != begin {
		return nil
	}
	if _, ok := m.plain(); ok {
		return nil
	}
	for depth := len(m.ends); len(m.ends) >= depth; {
		if err := m.next(); err != nil {
			return err
		}
	}
	return nil
}

// attr returns an attribute of the tag that was read last.
func (m *markup) attr(name string) (string, error) {
	rest := m.attrs
	for len(rest) > 0 {
		key, after, found := bytes.Cut(rest, []byte("="))
		after = bytes.TrimLeft(after, spaces)
		if !found || len(after) < 2 || after[0] != '"' && after[0] != '\'' {
			return "", m.damaged("invalid attribute %.50q", rest)
		}
		value, after, found := bytes.Cut(after[1:], after[:1])
		if !found {
			return "", m.damaged("invalid attribute %.50q", rest)
		}
		if string(bytes.TrimRight(key, spaces)) == name {
			return string(value), nil
		}
		rest = bytes.TrimLeft(after, spaces)
	}
	return "", nil
}

const spaces = " \t\r\n"

func space(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }

// unescape appends text to m.text.
func (m *markup) unescape(text []byte) error {
	for {
		before, after, more := bytes.Cut(text, []byte("&"))
		m.text = appendLines(m.text, before)
		if !more {
			return nil
		}
		name, rest, found := bytes.Cut(after, []byte(";"))
		r, ok := entity(name)
		if !found || !ok {
			return m.damaged("invalid entity &%.20s", name)
		}
		m.text, text = utf8.AppendRune(m.text, r), rest
	}
}

// entity returns the character of an entity.
func entity(name []byte) (rune, bool) {
	switch string(name) {
	case "amp":
		return '&', true
	case "lt":
		return '<', true
	case "gt":
		return '>', true
	case "quot":
		return '"', true
	case "apos":
		return '\'', true
	}
	digits, found := bytes.CutPrefix(name, []byte("#"))
	base := 10
	if hex, ok := bytes.CutPrefix(digits, []byte("x")); ok {
		digits, base = hex, 16
	}
	n, err := strconv.ParseUint(string(digits), base, 31)
	r := rune(n)
	return r, found && err == nil && utf8.ValidRune(r) && r > 0
}

// appendLines appends text with its line ends as XML reads them: each is one line feed.
func appendLines(dst, text []byte) []byte {
	for {
		i := bytes.IndexByte(text, '\r')
		if i < 0 {
			return append(dst, text...)
		}
		dst = append(append(dst, text[:i]...), '\n')
		text = bytes.TrimPrefix(text[i+1:], []byte("\n"))
	}
}

// until returns the bytes before a mark, which it skips.
func (m *markup) until(mark string) ([]byte, error) {
	for searched := 0; ; {
		rest := m.buf[m.from:]
		if i := bytes.Index(rest[searched:], []byte(mark)); i >= 0 {
			i += searched
			m.from += i + len(mark)
			return rest[:i], nil
		}
		searched = max(0, len(rest)-len(mark)+1)
		if err := m.fill(); err != nil {
			return nil, err
		}
	}
}

// untilTagEnd returns the bytes before a > outside quotes, which it skips, and how many of them are before the first
// space.
func (m *markup) untilTagEnd() (tag []byte, name int, err error) {
	quote := byte(0)
	name = -1
	for i := 0; ; {
		rest := m.buf[m.from:]
		for ; i < len(rest); i++ {
			switch c := rest[i]; {
			case c > '>': // letters, mostly
			case quote != 0:
				if c == quote {
					quote = 0
				}
			case c == '"' || c == '\'':
				quote = c
			case c == '>':
				m.from += i + 1
				if name < 0 {
					name = i
				}
				return rest[:i], name, nil
			case name < 0 && space(c):
				name = i
			}
		}
		if err := m.fill(); err != nil {
			return nil, 0, err
		}
	}
}

// peek returns the next n bytes, or fewer at the end.
func (m *markup) peek(n int) ([]byte, error) {
	for len(m.buf)-m.from < n {
		if err := m.fill(); errors.Is(err, io.ErrUnexpectedEOF) {
			break
		} else if err != nil {
			return nil, err
		}
	}
	return m.buf[m.from:min(len(m.buf), m.from+n)], nil
}

// fill reads more. At the end of the document it returns io.ErrUnexpectedEOF.
func (m *markup) fill() error {
	if m.from > 0 {
		m.buf = m.buf[:copy(m.buf, m.buf[m.from:])]
		m.from = 0
	}
	if len(m.buf) == cap(m.buf) {
		if len(m.buf) >= maxToken {
			return m.damaged("a token has more than %d bytes", maxToken)
		}
		m.buf = append(make([]byte, 0, 2*cap(m.buf)), m.buf...)
	}
	for m.err == nil {
		n, err := m.r.Read(m.buf[len(m.buf):cap(m.buf)])
		m.buf, m.read = m.buf[:len(m.buf)+n], m.read+int64(n)
		if m.err = err; errors.Is(err, io.EOF) {
			m.err = io.ErrUnexpectedEOF
		}
		if n > 0 {
			return nil
		}
	}
	return m.err
}
