package envelope

import (
	"encoding/binary"
	"slices"
	"strconv"

	"blobfeed/source/ocf"
)

// row is the source of the values of columns: an event, and what was parsed from it.
type row struct {
	ev                       *ocf.Event
	account, container, blob string
	kind                     Kind
	updated                  Timestamp
	hlc, mvcc                []byte // the texts of updated, and of when the blob was written
	position                 []byte // the text of where the event is; none in a scan
	scan                     *Scan  // nil for an event
	now                      int64  // ns
	before                   *row   // with an event that holds what is known of the row before, which is
	told                     bool   // something
}

// field is the type of a column, and the way to its value. Every value may be null, and is where the feed has none.
type field interface {
	json(b []byte, r *row) []byte
	avro(b []byte, r *row) []byte // a union of null and the type
	schema(defined names) string  // the type in Avro; a record that is in defined is referred to
	connect(optional bool) string // the type in Kafka Connect's JSON: the members but "field", sorted
}

// column is a field with a name.
type column struct {
	name string
	field
	required bool // never null; only Kafka Connect's schema says so
}

// names are the names of the records that a schema has defined.
type names map[string]bool

const null = "null"

// text is a column of strings.
type text func(*row) string

func (f text) json(b []byte, r *row) []byte { return appendText(b, f(r)) }
func (text) schema(names) string            { return `"string"` }
func (text) connect(optional bool) string   { return connectType(optional, "string") }
func (f text) avro(b []byte, r *row) []byte {
	s := f(r)
	if s == "" {
		return append(b, absent)
	}
	return appendAvroString(append(b, present), s)
}

// never is a column of strings that are written elsewhere.
var never = text(func(*row) string { return "" })

// ascii is a column of texts that are never null, and need no escapes.
type ascii func(b []byte, r *row) []byte

func (f ascii) json(b []byte, r *row) []byte { return append(f(append(b, '"'), r), '"') }
func (ascii) schema(names) string            { return `"string"` }
func (ascii) connect(optional bool) string   { return connectType(optional, "string") }
func (f ascii) avro(b []byte, r *row) []byte {
	b = append(b, present)
	from := len(b)
	return insertSize(f(b, r), from)
}

// place is the column of an event's position. A row of a scan has none.
type place struct{ ascii }

func (f place) json(b []byte, r *row) []byte {
	if r.scan != nil {
		return append(b, null...)
	}
	return f.ascii.json(b, r)
}
func (f place) avro(b []byte, r *row) []byte {
	if r.scan != nil {
		return append(b, absent)
	}
	return f.ascii.avro(b, r)
}

// integer is a column of 64 bits.
type integer func(*row) (v int64, ok bool)

func (integer) schema(names) string          { return `"long"` }
func (integer) connect(optional bool) string { return connectType(optional, "int64") }
func (f integer) json(b []byte, r *row) []byte {
	if v, ok := f(r); ok {
		return strconv.AppendInt(b, v, 10)
	}
	return append(b, null...)
}
func (f integer) avro(b []byte, r *row) []byte {
	if v, ok := f(r); ok {
		return binary.AppendVarint(append(b, present), v)
	}
	return append(b, absent)
}

// unset is a column of integers that are written elsewhere.
var unset = integer(func(*row) (int64, bool) { return 0, false })

// instant is the column of the event's time: the feed's text in JSON, a number of units in Avro.
type instant struct {
	text
	ns   int64 // of a unit
	unit string
}

func (f instant) schema(names) string {
	return `{"type":"long","logicalType":"timestamp-` + f.unit + `"}`
}
func (f instant) avro(b []byte, r *row) []byte {
	if f.text(r) == "" {
		return append(b, absent)
	}
	return binary.AppendVarint(append(b, present), r.updated.Wall/f.ns)
}

// path is the key column: container/blob.
type path struct{ text }

func (path) json(b []byte, r *row) []byte { return appendPath(b, r.container, r.blob) }
func (path) avro(b []byte, r *row) []byte {
	b = append(b, present)
	if r.blob != "" && valid(r.container) && valid(r.blob) {
		b = append(appendSize(b, len(r.container)+1+len(r.blob)), r.container...)
		return append(append(b, '/'), r.blob...)
	}
	from := len(b)
	b = appendValid(b, r.container)
	if r.blob != "" {
		b = appendValid(append(b, '/'), r.blob)
	}
	return insertSize(b, from)
}

// list is a constant list of names.
type list []string

func (f list) json(b []byte, _ *row) []byte {
	for i, s := range f {
		b = appendString(append(b, [...]string{"[", ", "}[min(i, 1)]...), s)
	}
	return append(b, ']')
}
func (list) schema(names) string { return `{"type":"array","items":"string"}` }
func (list) connect(optional bool) string {
	return `"items": {"optional": false, "type": "string"}, ` + connectType(optional, "array")
}
func (f list) avro(b []byte, _ *row) []byte {
	b = binary.AppendVarint(append(b, present), int64(len(f)))
	for _, s := range f {
		b = appendAvroString(b, s)
	}
	return append(b, 0)
}

// hollow is a column that is never filled.
type hollow struct{ field }

func (hollow) json(b []byte, _ *row) []byte { return append(b, null...) }
func (hollow) avro(b []byte, _ *row) []byte { return append(b, absent) }

// onlyKey returns the columns of a row of which nothing but the key is filled.
func onlyKey(columns, key []column) []column {
	columns = slices.Clone(columns)
	for i, c := range columns {
		if !slices.ContainsFunc(key, func(k column) bool { return k.name == c.name }) {
			columns[i].field = hollow{c.field}
		}
	}
	return columns
}
