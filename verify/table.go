package verify

import "encoding/json"

// Table checks the form of a table topic: each record has a key, and is that key's row, or a tombstone. There are no
// markers, which a compacted topic refuses, and no empty values, which readers take for a row of nothing but nulls. Whether
// the table says the right thing is Replay's, with ReplayLatest. It keeps nothing. A value that is not JSON is taken for a row.
type Table struct{ failures }

// NewTable returns a Table.
func NewTable() *Table { return &Table{} }

// Note implements Validator.
func (v *Table) Note(r Record) {
	if r.In != "" {
		return // a marker in a topic of its own
	}
	v.checked++
	switch {
	case r.Key == nil:
		v.add(&r, "it has no key: a marker does not belong into a table")
	case r.Value == nil:
	case len(r.Value) == 0:
		v.add(&r, "the value is empty, not null: readers take it for an update")
	case r.Value[0] != '{':
	case !r.document().row:
		v.add(&r, "the value is no row: %.100s", r.Value)
	default:
		if path := r.document().path; path != keyPath(r.Key) {
			v.add(&r, "the row is that of %q", path)
		}
	}
}

// keyPath returns the path that a key says, in any of its formats: no path begins like JSON, since no container's name does.
func keyPath(key []byte) string {
	var array []string
	var object struct{ Path string }
	switch {
	case len(key) > 0 && key[0] == '[' && json.Unmarshal(key, &array) == nil && len(array) == 1:
		return array[0]
	case len(key) > 0 && key[0] == '{' && json.Unmarshal(key, &object) == nil:
		return object.Path
	}
	return string(key)
}
