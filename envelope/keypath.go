package envelope

import (
	"encoding/binary"
	"encoding/json"
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

// Deletes reports whether a value of this encoder says that the blob is deleted. Of some Avro values it does not know,
// and reports false.
func (e *Encoder) Deletes(value []byte) bool {
	switch {
	case value == nil:
		return true
	case len(value) == 0:
		return e.o.Envelope != KeyOnly
	case e.o.Envelope != Wrapped && e.o.Envelope != Enriched:
		return false
	case e.o.Format == Avro:
		return e.o.Envelope == Wrapped && !e.o.Diff && len(value) > len(e.head) && value[len(e.head)] == absent
	}
	// A text has its quotes escaped, and no other field has this name.
	return strings.Contains(string(value), `"after": null`)
}

// TellsDeletions reports whether a topic of this encoder shows which keys are deleted.
func (e *Encoder) TellsDeletions() bool {
	return e.o.Envelope != KeyOnly || e.o.Deletes == DeletesTombstone
}
