package envelope

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/hamba/avro/v2"
)

// avroJSON returns a message as Avro's JSON, and fails if anything is left of it. It reads the bytes by itself, since
// hamba takes truncated ones and those that are too long.
func avroJSON(t testing.TB, schema string, message []byte) string {
	t.Helper()
	s := parsed(t, schema)
	if len(message) < 5 || message[0] != 0 {
		t.Fatalf("message %x is not Confluent's", message)
	}
	d := &avroReader{t: t, b: message[5:]}
	text, err := json.Marshal(d.read(s, allBranches))
	if err != nil {
		t.Fatal(err)
	}
	if len(d.b) > 0 {
		t.Fatalf("%d bytes are left of %x", len(d.b), message)
	}
	return string(text)
}

var parsedSchemas = map[string]avro.Schema{} // parsing takes longer than all else

func parsed(t testing.TB, schema string) avro.Schema {
	t.Helper()
	if parsedSchemas[schema] == nil {
		s, err := avro.ParseWithCache(schema, "", &avro.SchemaCache{}) // a cache of its own: names are defined in it
		if err != nil {
			t.Fatalf("%s: %v", schema, err)
		}
		parsedSchemas[schema] = s
	}
	return parsedSchemas[schema]
}

// avroReader decodes by a schema.
type avroReader struct {
	t testing.TB
	b []byte
}

func (d *avroReader) long() int64 {
	v, n := binary.Varint(d.b)
	if n <= 0 {
		d.t.Fatalf("no number at %x", d.b)
	}
	d.b = d.b[n:]
	return v
}

func (d *avroReader) text() string {
	n := d.long()
	if n < 0 || n > int64(len(d.b)) {
		d.t.Fatalf("a string of %d bytes of %d", n, len(d.b))
	}
	s := string(d.b[:n])
	d.b = d.b[n:]
	if !utf8.ValidString(s) {
		d.t.Errorf("%q is no UTF-8", s)
	}
	return s
}

// branches says which branches of unions are named in what is read.
type branches uint8

// read returns a value.
func (d *avroReader) read(s avro.Schema, b branches) any {
	switch s := s.(type) {
	case *avro.RefSchema:
		return d.read(s.Schema(), b)
	case *avro.UnionSchema:
		i := d.long()
		if i < 0 || int(i) >= len(s.Types()) {
			d.t.Fatalf("branch %d of %s", i, s)
		}
		branch := s.Types()[i]
		v := d.read(branch, b)
		primitive := branch.Type() == avro.Long || branch.Type() == avro.String
		if v == nil || b == noBranches || b == hambaBranches && primitive {
			return v
		}
		name := string(branch.Type())
		if named, ok := branch.(avro.NamedSchema); ok {
			name = named.FullName()
		}
		return map[string]any{name: v}
	case *avro.RecordSchema:
		m := map[string]any{}
		for _, f := range s.Fields() {
			m[f.Name()] = d.read(f.Type(), b)
		}
		return m
	case *avro.MapSchema:
		m := map[string]any{}
		for n := d.long(); n != 0; n = d.long() {
			for range n {
				name := d.text()
				if _, ok := m[name]; ok && !strings.Contains(name, "\ufffd") { // that may stand for different bytes
					d.t.Errorf("%s is twice in a map", name)
				}
				m[name] = d.read(s.Values(), b)
			}
		}
		return m
	case *avro.ArraySchema:
		a := []any{}
		for n := d.long(); n != 0; n = d.long() {
			for range n {
				a = append(a, d.read(s.Items(), b))
			}
		}
		return a
	}
	switch s.Type() {
	case avro.Null:
		return nil
	case avro.Long:
		return json.Number(fmt.Sprint(d.long()))
	case avro.String:
		return d.text()
	}
	d.t.Fatalf("type %s is not expected", s.Type())
	return nil
}

const (
	noBranches    branches = iota
	hambaBranches          // of the types that hamba names
	allBranches            // as in Avro's JSON
)
