package ocf

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

type kind uint8

const (
	kNull kind = iota
	kBoolean
	kInt // and long
	kFloat
	kDouble
	kString // and bytes
	kFixed
	kEnum
	kRecord
	kArray
	kMap
	kUnion
)

// schema is an Avro type. Recursive types point to themselves.
type schema struct {
	kind    kind
	bytes   bool // a kString that is Avro bytes
	empty   bool // a value may take no bytes
	size    int64
	symbols []string
	fields  []field
	items   *schema   // of arrays and maps
	union   []*schema // branches
}

type field struct {
	name string
	typ  *schema
}

var primitives = map[string]*schema{
	"null": {kind: kNull, empty: true}, "boolean": {kind: kBoolean}, "int": {kind: kInt}, "long": {kind: kInt},
	"float": {kind: kFloat}, "double": {kind: kDouble}, "string": {kind: kString},
	"bytes": {kind: kString, bytes: true},
}

const (
	maxDepth = 32   // of nested types, and of nested values
	maxTypes = 4096 // of one schema
)

// parser resolves names as it goes: a name must be defined before it is used.
type parser struct {
	named map[string]*schema
	types int
}

func parseSchema(text string) (*schema, error) {
	p := &parser{named: map[string]*schema{}}
	return p.parse(json.RawMessage(text), "", 0)
}

func (p *parser) parse(raw json.RawMessage, space string, depth int) (*schema, error) {
	if p.types++; depth > maxDepth || p.types > maxTypes {
		return nil, errors.New("the schema is too deep or too large")
	}
	raw = json.RawMessage(strings.TrimSpace(string(raw)))
	if len(raw) == 0 {
		return nil, errors.New("the schema is missing")
	}
	switch raw[0] {
	case '"':
		var name string
		if err := json.Unmarshal(raw, &name); err != nil {
			return nil, err
		}
		return p.lookup(name, space)
	case '[':
		var branches []json.RawMessage
		if err := json.Unmarshal(raw, &branches); err != nil {
			return nil, err
		}
		s := &schema{kind: kUnion}
		for _, b := range branches {
			t, err := p.parse(b, space, depth+1)
			if err != nil {
				return nil, err
			}
			if t.kind == kUnion {
				return nil, errors.New("a union is a branch of a union")
			}
			s.union = append(s.union, t)
		}
		if len(s.union) == 0 {
			return nil, errors.New("a union has no branches")
		}
		return s, nil
	}
	return p.complex(raw, space, depth)
}

func (p *parser) lookup(name, space string) (*schema, error) {
	if s := primitives[name]; s != nil {
		return s, nil
	}
	if s := p.named[fullName(name, space)]; s != nil {
		return s, nil
	}
	if s := p.named[name]; s != nil {
		return s, nil
	}
	return nil, fmt.Errorf("type %q is not defined", clip(name))
}

func fullName(name, space string) string {
	if space == "" || strings.Contains(name, ".") {
		return name
	}
	return space + "." + name
}

// definition is a schema that is a JSON object. Attributes are taken by their exact names, and only those that the type
// has: encoding/json would fold their case, and fail on another one of that name.
type definition map[string]json.RawMessage

func (d definition) read(name string, to any) error {
	raw, ok := d[name]
	if !ok {
		return nil
	}
	if err := json.Unmarshal(raw, to); err != nil {
		return fmt.Errorf("reading %q: %w", name, err)
	}
	return nil
}

func (p *parser) complex(raw json.RawMessage, space string, depth int) (*schema, error) {
	var d definition
	if err := json.Unmarshal(raw, &d); err != nil {
		return nil, err
	}
	var kind string
	if err := json.Unmarshal(d["type"], &kind); err != nil {
		return p.parse(d["type"], space, depth+1) // {"type": {...}} and {"type": [...]}
	}
	s := &schema{}
	var err error
	switch kind {
	case "array":
		s.kind = kArray
		s.items, err = p.parse(d["items"], space, depth+1)
	case "map":
		s.kind = kMap
		s.items, err = p.parse(d["values"], space, depth+1)
	case "record", "error", "enum", "fixed":
		err = p.define(s, kind, d, space, depth)
	default:
		return p.lookup(kind, space)
	}
	return s, err
}

// define reads a type that has a name.
func (p *parser) define(s *schema, kind string, d definition, space string, depth int) error {
	var name string
	if err := errors.Join(d.read("name", &name), d.read("namespace", &space)); err != nil {
		return err
	}
	full := fullName(name, space)
	space = full[:max(strings.LastIndexByte(full, '.'), 0)]
	switch kind {
	case "enum":
		s.kind = kEnum
		p.named[full] = s
		return d.read("symbols", &s.symbols)
	case "fixed":
		s.kind = kFixed
		p.named[full] = s
		err := d.read("size", &s.size)
		if err == nil && s.size < 0 {
			err = fmt.Errorf("fixed type %s has size %d", clip(full), s.size)
		}
		s.empty = s.size == 0
		return err
	}
	s.kind = kRecord
	p.named[full] = s // before its fields: they may refer to it
	var fields []definition
	if err := d.read("fields", &fields); err != nil {
		return err
	}
	empty := true
	for _, f := range fields {
		var name string
		err := f.read("name", &name)
		var typ *schema
		if err == nil {
			typ, err = p.parse(f["type"], space, depth+1)
		}
		if err != nil {
			return fmt.Errorf("field %s: %w", clip(name), err)
		}
		empty = empty && typ.empty // of a record inside itself it is false: such a value has no end
		s.fields = append(s.fields, field{name, typ})
	}
	s.empty = empty
	return nil
}
