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
	"null": {kind: kNull}, "boolean": {kind: kBoolean}, "int": {kind: kInt}, "long": {kind: kInt},
	"float": {kind: kFloat}, "double": {kind: kDouble}, "string": {kind: kString}, "bytes": {kind: kString, bytes: true},
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
		return nil, errors.New("there is no schema")
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
	return nil, fmt.Errorf("type %q is not defined", name)
}

func fullName(name, space string) string {
	if space == "" || strings.Contains(name, ".") {
		return name
	}
	return space + "." + name
}

func (p *parser) complex(raw json.RawMessage, space string, depth int) (*schema, error) {
	var t struct {
		Type      json.RawMessage
		Name      string
		Namespace *string
		Symbols   []string
		Size      int64
		Items     json.RawMessage
		Values    json.RawMessage
		Fields    []struct {
			Name string
			Type json.RawMessage
		}
	}
	if err := json.Unmarshal(raw, &t); err != nil {
		return nil, err
	}
	var name string
	if err := json.Unmarshal(t.Type, &name); err != nil {
		return p.parse(t.Type, space, depth+1) // {"type": {...}} and {"type": [...]}
	}
	if t.Namespace != nil {
		space = *t.Namespace
	}
	full := fullName(t.Name, space)
	if i := strings.LastIndexByte(full, '.'); i >= 0 {
		space = full[:i]
	}
	s := &schema{}
	var err error
	switch name {
	case "record", "error":
		s.kind = kRecord
		p.named[full] = s // before its fields: they may refer to it
		for _, f := range t.Fields {
			typ, err := p.parse(f.Type, space, depth+1)
			if err != nil {
				return nil, fmt.Errorf("field %s: %w", f.Name, err)
			}
			s.fields = append(s.fields, field{f.Name, typ})
		}
	case "enum":
		s.kind, s.symbols = kEnum, t.Symbols
		p.named[full] = s
	case "fixed":
		s.kind, s.size = kFixed, t.Size
		if t.Size < 0 {
			return nil, fmt.Errorf("fixed type %s has size %d", full, t.Size)
		}
		p.named[full] = s
	case "array":
		s.kind = kArray
		s.items, err = p.parse(t.Items, space, depth+1)
	case "map":
		s.kind = kMap
		s.items, err = p.parse(t.Values, space, depth+1)
	default:
		return p.lookup(name, space)
	}
	return s, err
}
