package ocf

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
)

var (
	errDeep    = errors.New("the value is nested too deep")
	errBoolean = errors.New("a boolean is neither 0 nor 1")
)

// valueText reads a value as Event.Extra holds it: strings and symbols as they are, bytes in base64, the rest as JSON.
func (r *reader) valueText(s *schema) (text string, null bool, err error) {
	if s.kind == kUnion {
		if s, err = r.choose(s); err != nil {
			return "", false, err
		}
	}
	switch {
	case s.kind == kNull:
		return "", true, r.spend(1)
	case s.kind == kEnum:
		text, err = r.symbol(s)
	case s.kind == kString && !s.bytes:
		text, err = r.string()
	default:
		var b []byte
		if b, err = r.appendJSON(nil, s, 0); err != nil {
			return "", false, err
		}
		if text = string(b); text[0] == '"' { // base64, or a number that JSON lacks: nothing in it is escaped
			text = text[1 : len(text)-1]
		}
	}
	if err == nil {
		err = r.spend(pairCost)
	}
	return text, false, err
}

// appendJSON reads a value and appends it as JSON to b, the keys of objects sorted.
func (r *reader) appendJSON(b []byte, s *schema, depth int) ([]byte, error) {
	if depth > maxDepth {
		return b, errDeep
	}
	before := len(b)
	var err error
	switch s.kind {
	case kNull:
		b = append(b, "null"...)
	case kUnion:
		var branch *schema
		if branch, err = r.choose(s); err == nil {
			b, err = r.appendJSON(b, branch, depth+1)
		}
		return b, err // the branch paid
	case kRecord, kMap:
		return r.appendObject(b, s, depth)
	case kArray:
		return r.appendArray(b, s, depth)
	default:
		b, err = r.appendScalar(b, s)
	}
	if err == nil {
		err = r.spend(1 + len(b) - before)
	}
	return b, err
}

func (r *reader) appendScalar(b []byte, s *schema) ([]byte, error) {
	switch s.kind {
	case kInt:
		v, err := r.long()
		return strconv.AppendInt(b, v, 10), err
	case kBoolean:
		t, err := r.take(1)
		if err == nil && t[0] > 1 {
			err = errBoolean
		}
		return strconv.AppendBool(b, t == "\x01"), err
	case kFloat:
		t, err := r.take(4)
		if err != nil {
			return b, err
		}
		return appendFloat(b, float64(math.Float32frombits(binary.LittleEndian.Uint32([]byte(t)))), 32), nil
	case kDouble:
		t, err := r.take(8)
		if err != nil {
			return b, err
		}
		return appendFloat(b, math.Float64frombits(binary.LittleEndian.Uint64([]byte(t))), 64), nil
	case kFixed:
		t, err := r.take(s.size)
		return appendBase64(b, t), err
	case kEnum:
		t, err := r.symbol(s)
		return appendQuoted(b, t), err
	default: // kString
		t, err := r.string()
		if s.bytes {
			return appendBase64(b, t), err
		}
		return appendQuoted(b, t), err
	}
}

func (r *reader) appendArray(b []byte, s *schema, depth int) ([]byte, error) {
	b = append(b, '[')
	for first := true; ; {
		n, err := r.count()
		if err != nil {
			return b, err
		}
		if n == 0 {
			return append(b, ']'), r.spend(2)
		}
		for ; n > 0; n-- {
			if !first {
				b = append(b, ',')
			}
			first = false
			if b, err = r.appendJSON(b, s.items, depth+1); err != nil {
				return b, err
			}
		}
	}
}

type member struct {
	name string
	text []byte
}

func (r *reader) appendObject(b []byte, s *schema, depth int) ([]byte, error) {
	members, err := r.members(s, depth)
	if err != nil {
		return b, err
	}
	slices.SortStableFunc(members, func(x, y member) int { return strings.Compare(x.name, y.name) })
	b = append(b, '{')
	for i, m := range members {
		if i+1 < len(members) && members[i+1].name == m.name {
			continue // of equal keys the last one counts
		}
		if b[len(b)-1] != '{' {
			b = append(b, ',')
		}
		b = append(appendQuoted(b, m.name), ':')
		b = append(b, m.text...)
	}
	return append(b, '}'), r.spend(2)
}

func (r *reader) members(s *schema, depth int) ([]member, error) {
	var list []member
	add := func(name string, t *schema) error {
		if err := r.spend(pairCost + len(name)); err != nil {
			return err
		}
		text, err := r.appendJSON(nil, t, depth+1)
		list = append(list, member{name, text})
		return err
	}
	if s.kind == kRecord {
		for _, f := range s.fields {
			if err := add(f.name, f.typ); err != nil {
				return nil, err
			}
		}
		return list, nil
	}
	err := r.entries(func() error {
		name, err := r.string()
		if err != nil {
			return err
		}
		return add(name, s.items)
	})
	return list, err
}

func appendQuoted(b []byte, text string) []byte {
	q, _ := json.Marshal(text) // it never fails for a string; invalid UTF-8 becomes U+FFFD
	return append(b, q...)
}

func appendBase64(b []byte, text string) []byte {
	b = append(b, '"')
	b = base64.StdEncoding.AppendEncode(b, []byte(text))
	return append(b, '"')
}

// appendFloat writes what JSON has no number for as text.
func appendFloat(b []byte, f float64, bits int) []byte {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return append(strconv.AppendFloat(append(b, '"'), f, 'g', -1, bits), '"')
	}
	var q []byte
	if bits == 32 {
		q, _ = json.Marshal(float32(f)) // finite numbers never fail
	} else {
		q, _ = json.Marshal(f)
	}
	return append(b, q...)
}

// Schema is the schema of records that are not events, such as those of a registry.
type Schema struct{ root *schema }

// Member is a field of a record: its value as JSON, and where its bytes are in the data.
type Member struct {
	Name     string
	JSON     []byte
	From, To int
}

var errNotRecord = errors.New("the value is not one record")

// ParseSchema reads a schema. Its depth and its number of types are bounded.
func ParseSchema(text string) (*Schema, error) {
	root, err := parseSchema(text)
	if err != nil {
		return nil, err
	}
	return &Schema{root}, nil
}

// Members reads data that is one value of the schema, which must be a record. What it allocates is bounded by the size
// of the data.
func (s *Schema) Members(data string) ([]Member, error) {
	if s.root.kind != kRecord {
		return nil, errNotRecord
	}
	r := newReader(data, defaults.Decompressed)
	members := make([]Member, len(s.root.fields))
	for i, f := range s.root.fields {
		from := r.at
		text, err := r.appendJSON(nil, f.typ, 1)
		if err != nil {
			return nil, err
		}
		members[i] = Member{f.name, text, from, r.at}
	}
	if r.at != len(data) {
		return nil, errNotRecord
	}
	return members, nil
}
