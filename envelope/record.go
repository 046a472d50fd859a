package envelope

import (
	"encoding/binary"
	"slices"
	"strings"
)

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
