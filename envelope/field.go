package envelope

import (
	"encoding/binary"
	"slices"
	"strconv"
	"strings"

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

// ascii is a column of texts that need no escapes; nil is null.
type ascii func(*row) []byte

func (ascii) schema(names) string          { return `"string"` }
func (ascii) connect(optional bool) string { return connectType(optional, "string") }
func (f ascii) json(b []byte, r *row) []byte {
	s := f(r)
	if s == nil {
		return append(b, null...)
	}
	return append(append(append(b, '"'), s...), '"')
}
func (f ascii) avro(b []byte, r *row) []byte {
	s := f(r)
	if s == nil {
		return append(b, absent)
	}
	return append(appendSize(append(b, present), len(s)), s...)
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

// record is a field of fields: a row, and the envelope itself.
type record struct {
	name, namespace string // in Avro
	connectName     string
	columns         []column        // in Avro's order
	of              func(*row) *row // the row of the columns; nil: the record is null
	deleted         *record         // what to write for a deletion; nil: the same

	sorted []column // in JSON's order
	leads  []string // what comes before their values
}

func newRecord(name string, columns []column, of func(*row) *row) *record {
	f := &record{name: name, columns: columns, of: of, sorted: slices.Clone(columns)}
	sortColumns(f.sorted)
	for i, c := range f.sorted {
		f.leads = append(f.leads, [...]string{"{", ", "}[min(i, 1)]+string(appendString(nil, c.name))+": ")
	}
	return f
}

func same(r *row) *row { return r }

func (f *record) json(b []byte, r *row) []byte {
	if r = f.of(r); r == nil {
		return append(b, null...)
	}
	if f.deleted != nil && r.kind == Delete {
		f = f.deleted
	}
	for i, lead := range f.leads {
		b = f.sorted[i].json(append(b, lead...), r)
	}
	return append(b, '}')
}

func (f *record) avro(b []byte, r *row) []byte {
	if r = f.of(r); r == nil {
		return append(b, absent)
	}
	if f.deleted != nil && r.kind == Delete {
		f = f.deleted
	}
	return f.body(append(b, present), r)
}

// body is the record where it is in no union: at the top.
func (f *record) body(b []byte, r *row) []byte {
	for i := range f.columns {
		b = f.columns[i].avro(b, r)
	}
	return b
}

// marker appends the record with a resolved time, and nothing else.
func (f *record) marker(b []byte, resolved string) []byte {
	for i := range f.columns {
		if f.columns[i].name == "resolved" {
			b = appendAvroString(append(b, present), resolved)
		} else {
			b = append(b, absent)
		}
	}
	return b
}

// schema has the layout of CockroachDB's: type, name, fields, namespace; in fields type, name, default.
func (f *record) schema(defined names) string {
	name := string(appendString(nil, f.name))
	if defined[f.name] {
		return name
	}
	defined[f.name] = true
	var b strings.Builder
	b.WriteString(`{"type":"record","name":` + name + `,"fields":[`)
	for i, c := range f.columns {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(`{"type":["null",` + c.schema(defined) + `],"name":"` + c.name + `","default":null}`)
	}
	b.WriteByte(']')
	if f.namespace != "" {
		b.WriteString(`,"namespace":"` + f.namespace + `"`)
	}
	b.WriteByte('}')
	return b.String()
}

func (f *record) connect(optional bool) string {
	var fields []string
	for _, c := range f.columns {
		fields = append(fields, `{"field": "`+c.name+`", `+c.connect(!c.required)+"}")
	}
	name := string(appendString(nil, f.connectName))
	return `"fields": [` + strings.Join(fields, ", ") + `], "name": ` + name + ", " + connectType(optional, "struct")
}

func connectType(optional bool, name string) string {
	if optional {
		return `"optional": true, "type": "` + name + `"`
	}
	return `"optional": false, "type": "` + name + `"`
}

// keyArray is the key in the value as CockroachDB writes it in JSON, an array of its columns; a record in Avro.
type keyArray struct{ *record }

func (f keyArray) json(b []byte, r *row) []byte {
	for i := range f.columns {
		b = f.columns[i].json(append(b, [...]string{"[", ", "}[min(i, 1)]...), r)
	}
	return append(b, ']')
}

const (
	absent  = 0 // the branches of a union, as Avro writes them
	present = 2
)

// confluent is what precedes the body: a zero byte and the id of its schema.
func confluent(id int) []byte { return binary.BigEndian.AppendUint32([]byte{0}, uint32(id)) }

// isMap reports whether a column is a map.
func isMap(f field) bool {
	switch f.(type) {
	case pairs, properties, tags:
		return true
	}
	return false
}

// mapText is a map as a text of JSON.
type mapText struct{ of field }

func (mapText) schema(names) string          { return `"string"` }
func (mapText) connect(optional bool) string { return connectType(optional, "string") }

func (f mapText) json(b []byte, r *row) []byte {
	from := len(b)
	if b = f.of.json(b, r); b[from] == '{' {
		b = quote(b, from)
	}
	return b
}

func (f mapText) avro(b []byte, r *row) []byte {
	from := len(b) + 1
	if b = f.of.json(append(b, present), r); b[from] != '{' {
		return append(b[:from-1], absent)
	}
	return insertSize(b, from)
}

// pairs is a column of maps of strings.
type pairs func(*ocf.Event) []ocf.Pair

func (f pairs) json(b []byte, r *row) []byte { return appendObject(b, f(r.ev), pairName, jsonPair) }
func (f pairs) avro(b []byte, r *row) []byte { return appendMap(b, f(r.ev), pairName, avroPair) }
func (pairs) schema(names) string            { return mapOf(`"string"`) }
func (pairs) connect(optional bool) string   { return connectMap(optional, connectType(false, "string")) }

// properties is a column of maps of a property's name to its values before and after.
type properties struct{ change *record }

func (properties) json(b []byte, r *row) []byte {
	return appendObject(b, r.ev.BlobPropertiesUpdated, propertyName, jsonProperty)
}
func (properties) avro(b []byte, r *row) []byte {
	return appendMap(b, r.ev.BlobPropertiesUpdated, propertyName, avroProperty)
}
func (f properties) schema(defined names) string { return mapOf(f.change.schema(defined)) }
func (f properties) connect(optional bool) string {
	return connectMap(optional, f.change.connect(false))
}

// tags is a column of the maps "previous" and "current".
type tags struct{}

func (tags) json(b []byte, r *row) []byte {
	return appendObject(b, r.ev.BlobTagsUpdated, tagsName, jsonTags)
}
func (tags) avro(b []byte, r *row) []byte {
	return appendMap(b, r.ev.BlobTagsUpdated, tagsName, avroTags)
}
func (tags) schema(names) string { return mapOf(mapOf(`"string"`)) }
func (tags) connect(optional bool) string {
	return connectMap(optional, connectMap(false, connectType(false, "string")))
}

func pairName(p ocf.Pair) string               { return p.Name }
func jsonPair(b []byte, p ocf.Pair) []byte     { return appendString(b, p.Value) }
func avroPair(b []byte, p ocf.Pair) []byte     { return appendAvroString(b, p.Value) }
func propertyName(c ocf.PropertyChange) string { return c.Name }
func tagsName(s ocf.TagSet) string             { return s.Name }

func jsonProperty(b []byte, c ocf.PropertyChange) []byte {
	b = appendString(append(b, `{"current": `...), c.Current)
	b = appendString(append(b, `, "previous": `...), c.Previous)
	return append(b, '}')
}

func avroProperty(b []byte, c ocf.PropertyChange) []byte {
	b = appendAvroString(append(b, present), c.Current)
	return appendAvroString(append(b, present), c.Previous)
}

// No tags are an empty map, which says that all were removed. Null would not.

func jsonTags(b []byte, s ocf.TagSet) []byte {
	if len(s.Tags) == 0 {
		return append(b, "{}"...)
	}
	return appendObject(b, s.Tags, pairName, jsonPair)
}

func avroTags(b []byte, s ocf.TagSet) []byte {
	if len(s.Tags) == 0 {
		return append(b, 0)
	}
	return appendBlocks(b, s.Tags, pairName, avroPair)
}

// appendObject appends a map as an object with sorted keys, or null if it is empty. The last one of equal keys counts,
// as in Avro maps. It sorts the entries in place: the event belongs to the encoder while it encodes, and a map has no
// order.
func appendObject[T any](b []byte, entries []T, name func(T) string, value func([]byte, T) []byte) []byte {
	if len(entries) == 0 {
		return append(b, null...)
	}
	sortEntries(entries, name)
	b = append(b, '{')
	for i, e := range entries {
		if i+1 < len(entries) && name(entries[i+1]) == name(e) {
			continue
		}
		if b[len(b)-1] != '{' {
			b = append(b, ", "...)
		}
		b = append(appendString(b, name(e)), ": "...)
		b = value(b, e)
	}
	return append(b, '}')
}

// appendMap appends a map as Avro's, in a union with null. Sorting makes its bytes the same whenever it is written.
func appendMap[T any](b []byte, entries []T, name func(T) string, value func([]byte, T) []byte) []byte {
	if len(entries) == 0 {
		return append(b, absent)
	}
	return appendBlocks(append(b, present), entries, name, value)
}

func appendBlocks[T any](b []byte, entries []T, name func(T) string, value func([]byte, T) []byte) []byte {
	sortEntries(entries, name)
	n := 0
	for i, e := range entries {
		if i+1 == len(entries) || name(entries[i+1]) != name(e) {
			n++
		}
	}
	b = binary.AppendVarint(b, int64(n))
	for i, e := range entries {
		if i+1 == len(entries) || name(entries[i+1]) != name(e) {
			b = value(appendAvroString(b, name(e)), e)
		}
	}
	return append(b, 0)
}

func sortEntries[T any](entries []T, name func(T) string) {
	slices.SortStableFunc(entries, func(a, b T) int { return strings.Compare(name(a), name(b)) })
}

func mapOf(values string) string { return `{"type":"map","values":` + values + `}` }

func connectMap(optional bool, values string) string {
	return `"keys": {` + connectType(false, "string") + `}, ` + connectType(optional, "map") + `, "values": {` +
		values + `}`
}
