package verify

import (
	"encoding/binary"
	"encoding/json"
	"fmt"

	"blobfeed/source/ocf"
)

// Avro reads values in Confluent's framing: a zero byte, the id of a schema, the body. It looks up each schema once.
// A registry, and whoever may write to the topic, are not trusted: memory and time are bounded by the size of a value.
type Avro struct {
	schema func(id int) (text string, err error)
	known  map[int]*ocf.Schema
	failed error
}

// NewAvro returns an Avro that looks up schemas with a function. The function returns "" for an unknown id.
func NewAvro(schema func(id int) (text string, err error)) *Avro {
	return &Avro{schema: schema, known: map[int]*ocf.Schema{}}
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

// span is a part of a value.
type span struct{ from, to int }

// read also returns the spans of the members of the top level.
func (a *Avro) read(value []byte) (text []byte, spans map[string]span) {
	if a == nil || !framed(value) {
		return nil, nil
	}
	s := a.at(int(binary.BigEndian.Uint32(value[1:])))
	if s == nil {
		return nil, nil
	}
	members, err := s.Members(string(value[5:]))
	if err != nil {
		return nil, nil
	}
	spans, text = map[string]span{}, []byte{'{'}
	for _, m := range members {
		spans[m.Name] = span{m.From + 5, m.To + 5}
		if string(m.JSON) == "null" {
			continue
		}
		if len(text) > 1 {
			text = append(text, ',')
		}
		name, err := json.Marshal(m.Name) // a hostile schema may have any
		if err != nil {
			return nil, nil
		}
		text = fmt.Appendf(text, "%s:%s", name, m.JSON)
	}
	return append(text, '}'), spans
}

func (a *Avro) at(id int) *ocf.Schema {
	s, known := a.known[id]
	if known {
		return s
	}
	text, err := a.schema(id)
	if err == nil && text != "" {
		if s, err = ocf.ParseSchema(text); err != nil {
			err = fmt.Errorf("parsing Avro schema %d: %w", id, err)
		}
	}
	if err != nil && a.failed == nil {
		a.failed = err
	}
	a.known[id] = s
	return s
}
