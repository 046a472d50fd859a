package envelope

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"
)

// Path returns the container and the name of the blob that a key of this encoder is for. Ok is false if the key
// does not say that for certain: it is another's, or bytes of the name that are not UTF-8 were replaced in it.
func (e *Encoder) Path(key []byte) (container, blob string, ok bool) {
	var path string
	switch e.o.KeyFormat {
	case KeyAvro:
		if len(key) < len(e.keyHead)+1 || string(key[:len(e.keyHead)]) != string(e.keyHead) {
			return "", "", false
		}
		key = key[len(e.keyHead):]
		size, n := binary.Varint(key[1:])
		if key[0] != present || n <= 0 || size != int64(len(key)-1-n) {
			return "", "", false
		}
		path = string(key[1+n:])
	case KeyJSONObject:
		var object struct{ Path string }
		if json.Unmarshal(key, &object) == nil {
			path = object.Path
		}
	case KeyString:
		path = string(key)
	default:
		var array []string
		if json.Unmarshal(key, &array) == nil && len(array) == 1 {
			path = array[0]
		}
	}
	container, blob, found := strings.Cut(path, "/")
	exact := utf8.ValidString(path) && !strings.ContainsRune(path, utf8.RuneError)
	return container, blob, found && exact && containerName(container) && blob != ""
}

// containerName reports whether the service could have a container of that name: it rejects requests for others.
func containerName(s string) bool {
	if s == "$root" || s == "$web" {
		return true
	}
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return r != '-' && (r < '0' || r > '9') && (r < 'a' || r > 'z')
	})
}

// Deletes reports whether a value of this encoder says that the blob is deleted. Of some Avro values, and of bare rows
// without an etag, it does not know, and reports false.
func (e *Encoder) Deletes(value []byte) bool {
	switch {
	case value == nil:
		return true
	case len(value) == 0:
		return e.o.Envelope != KeyOnly
	case e.o.Envelope == Bare:
		return e.bareDeletes(value)
	case e.o.Envelope != Wrapped && e.o.Envelope != Enriched:
		return false
	case e.o.Format == Avro:
		return e.o.Envelope == Wrapped && !e.o.Diff && len(value) > len(e.head) && value[len(e.head)] == absent
	}
	// A text has its quotes escaped, and no other field has this name.
	return strings.Contains(string(value), `"after": null`)
}

// bareDeletes is Deletes for bare rows: of a deletion nothing but the key is filled. Every blob has an etag, so a row
// with that column empty is no blob.
func (e *Encoder) bareDeletes(value []byte) bool {
	f := e.value
	if e.o.Format == Avro {
		if len(value) < len(e.head) || string(value[:len(e.head)]) != string(e.head) {
			return false
		}
		value = value[len(e.head):]
		for _, c := range f.columns {
			if len(value) == 0 {
				return false
			}
			branch := value[0]
			if value = value[1:]; branch == absent {
				continue
			}
			row, ok := c.field.(*record)
			return ok && c.name == "record" && row.deleted.hollowAvro(value)
		}
		return false
	}
	return f.deleted.hollowJSON(value)
}

// tells reports whether a record of which only the key is filled cannot be a blob.
func (f *record) tells() bool {
	return slices.ContainsFunc(f.columns, func(c column) bool { return c.name == "etag" && isHollow(&c) })
}

func isHollow(c *column) bool {
	_, is := c.field.(hollow)
	return is
}

// hollowAvro reports whether b begins with this record, a deletion, and not with a row: whether the columns that a
// deletion leaves out are null.
func (f *record) hollowAvro(b []byte) bool {
	for i := range f.columns {
		switch {
		case len(b) == 0:
			return false
		case b[0] == absent:
			b = b[1:]
			continue
		case isHollow(&f.columns[i]):
			return false
		}
		size, n := binary.Varint(b[1:]) // of a text: the key has no other columns
		if n <= 0 || size < 0 || size > int64(len(b)-1-n) {
			return false
		}
		b = b[1+n+int(size):]
	}
	return f.tells()
}

// hollowJSON is hollowAvro for JSON. What leads to the next column is in no text, whose quotes are escaped.
func (f *record) hollowJSON(b []byte) bool {
	filled := false // the column before
	for i, lead := range f.leads {
		at := bytes.Index(b, []byte(lead))
		if at < 0 || at > 0 && !filled {
			return false
		}
		b = b[at+len(lead):]
		if filled = !isHollow(&f.sorted[i]); !filled {
			rest, is := bytes.CutPrefix(b, []byte(null))
			if !is {
				return false
			}
			b = rest
		}
	}
	return f.tells()
}

// TellsDeletions reports whether a topic of this encoder shows which keys are deleted.
func (e *Encoder) TellsDeletions() bool {
	return e.o.Envelope != KeyOnly || e.o.Deletes == DeletesTombstone
}
