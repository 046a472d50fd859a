package listing

import (
	"bytes"
	"errors"
	"io"
)

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
