package verify

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
)

// Avro reads values in Confluent's framing: a zero byte, the id of a schema, the body. It knows the types that the
// bridge writes, and looks up each schema once.
type Avro struct {
	schema func(id int) (text string, err error)
	known  map[int]*avroType
	failed error
}

// NewAvro returns an Avro that looks up schemas with a function. The function returns "" for an unknown id.
func NewAvro(schema func(id int) (text string, err error)) *Avro {
	return &Avro{schema: schema, known: map[int]*avroType{}}
}

// Err returns the first error of a look-up. Values of that schema were not read, so nothing is proved.
func (a *Avro) Err() error { return a.failed }

// framed reports whether a value may be in Avro.
func framed(value []byte) bool { return len(value) >= 5 && value[0] == 0 }

// JSON returns a value as JSON without null members, or nil if its schema is unknown.
func (a *Avro) JSON(value []byte) []byte {
	text, _ := a.read(value)
	return text
}

// read also returns the spans of the members of the top level.
func (a *Avro) read(value []byte) (text []byte, members map[string]span) {
	if a == nil || !framed(value) {
		return nil, nil
	}
	t := a.at(int(binary.BigEndian.Uint32(value[1:])))
	if t == nil || t.name != "record" {
		return nil, nil
	}
	d := avroReader{value: value, at: 5, members: map[string]span{}}
	text = d.record(nil, t, true)
	if d.broken || d.at != len(value) {
		return nil, nil
	}
	return text, d.members
}

func (a *Avro) at(id int) *avroType {
	t, known := a.known[id]
	if known {
		return t
	}
	text, err := a.schema(id)
	if err == nil && text != "" {
		if t, err = parseAvro([]byte(text), map[string]*avroType{}); err != nil {
			err = fmt.Errorf("parsing Avro schema %d: %w", id, err)
		}
	}
	if err != nil && a.failed == nil {
		a.failed = err
	}
	a.known[id] = t
	return t
}

// avroType is a type of a schema. A union has its branches in of; an array and a map the type of what they hold.
type avroType struct {
	name   string
	fields []string
	of     []*avroType
}

func parseAvro(text []byte, named map[string]*avroType) (*avroType, error) {
	var name string
	if json.Unmarshal(text, &name) == nil {
		if t := named[name]; t != nil {
			return t, nil
		}
		return &avroType{name: name}, nil
	}
	var union []json.RawMessage
	if json.Unmarshal(text, &union) == nil {
		t := &avroType{name: "union"}
		for _, branch := range union {
			b, err := parseAvro(branch, named)
			if err != nil {
				return nil, err
			}
			t.of = append(t.of, b)
		}
		return t, nil
	}
	var s struct {
		Type          json.RawMessage
		Name          string
		Items, Values json.RawMessage
		Fields        []struct {
			Name string
			Type json.RawMessage
		}
	}
	if err := json.Unmarshal(text, &s); err != nil {
		return nil, err
	}
	t, err := parseAvro(s.Type, named)
	if err != nil {
		return nil, err
	}
	switch t.name {
	case "record":
		named[s.Name] = t
		for _, f := range s.Fields {
			of, err := parseAvro(f.Type, named)
			if err != nil {
				return nil, err
			}
			t.fields, t.of = append(t.fields, f.Name), append(t.of, of)
		}
	case "array", "map":
		items := s.Items
		if t.name == "map" {
			items = s.Values
		}
		of, err := parseAvro(items, named)
		if err != nil {
			return nil, err
		}
		t.of = []*avroType{of}
	}
	return t, nil
}

// span is a part of a value.
type span struct{ from, to int }

type avroReader struct {
	value   []byte
	at      int
	broken  bool
	members map[string]span
}

func (d *avroReader) long() int64 {
	v, n := binary.Varint(d.value[d.at:])
	if n <= 0 {
		d.broken = true
		return 0
	}
	d.at += n
	return v
}

func (d *avroReader) bytes(n int64) []byte {
	if d.broken || n < 0 || n > int64(len(d.value)-d.at) {
		d.broken = true
		return nil
	}
	d.at += int(n)
	return d.value[d.at-int(n) : d.at]
}

func (d *avroReader) any(b []byte, t *avroType) []byte {
	if d.broken {
		return b
	}
	switch t.name {
	case "null":
		return append(b, "null"...)
	case "union":
		n := d.long()
		if n < 0 || n >= int64(len(t.of)) {
			d.broken = true
			return b
		}
		return d.any(b, t.of[n])
	case "record":
		return d.record(b, t, false)
	case "long", "int":
		return strconv.AppendInt(b, d.long(), 10)
	case "double":
		if raw := d.bytes(8); raw != nil {
			return strconv.AppendFloat(b, math.Float64frombits(binary.LittleEndian.Uint64(raw)), 'g', -1, 64)
		}
		return b
	case "boolean":
		if raw := d.bytes(1); raw != nil {
			return strconv.AppendBool(b, raw[0] != 0)
		}
		return b
	case "string":
		return appendQuoted(b, string(d.bytes(d.long())))
	case "bytes":
		return appendQuoted(b, base64.StdEncoding.EncodeToString(d.bytes(d.long())))
	case "array":
		b = append(b, '[')
		b = d.blocks(b, func(b []byte) []byte { return d.any(b, t.of[0]) })
		return append(b, ']')
	case "map":
		b = append(b, '{')
		b = d.blocks(b, func(b []byte) []byte {
			b = append(appendQuoted(b, string(d.bytes(d.long()))), ':')
			return d.any(b, t.of[0])
		})
		return append(b, '}')
	}
	d.broken = true // a type that the bridge does not write
	return b
}

func (d *avroReader) record(b []byte, t *avroType, top bool) []byte {
	b = append(b, '{')
	first := true
	for i, name := range t.fields {
		from, size := d.at, len(b)
		if !first {
			b = append(b, ',')
		}
		b = append(appendQuoted(b, name), ':')
		value := len(b)
		b = d.any(b, t.of[i])
		if top {
			d.members[name] = span{from, d.at}
		}
		if string(b[value:]) == "null" {
			b = b[:size]
			continue
		}
		first = false
	}
	return append(b, '}')
}

// blocks reads the blocks of an array or a map.
func (d *avroReader) blocks(b []byte, item func([]byte) []byte) []byte {
	for first := true; !d.broken; {
		n := d.long()
		if n == 0 {
			return b
		}
		if n < 0 { // the size of the block follows
			n = -n
			d.long()
		}
		for ; n > 0 && !d.broken; n-- {
			if !first {
				b = append(b, ',')
			}
			first = false
			b = item(b)
		}
	}
	return b
}

func appendQuoted(b []byte, s string) []byte {
	text, err := json.Marshal(s)
	if err != nil { // never: it is a string
		panic(errors.Join(errors.New("quoting a string"), err))
	}
	return append(b, text...)
}
