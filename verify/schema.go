package verify

import "encoding/binary"

// Schema checks that keys, values or both are in Avro, by schemas that the registry has. It keeps nothing.
type Schema struct {
	failures
	keys, values bool
}

// NewSchema returns a Schema for topics with keys, values or both in Avro.
func NewSchema(keys, values bool) *Schema { return &Schema{keys: keys, values: values} }

// Note implements Validator.
func (v *Schema) Note(r Record) {
	if r.In != "" {
		return // a marker in a topic of its own
	}
	key, value := v.keys && r.Key != nil, v.values && len(r.Value) > 0
	if !key && !value {
		return
	}
	v.checked++
	if key && r.Avro.JSON(r.Key) == nil {
		v.unread(&r, "key", r.Key)
	}
	if value && r.document().members == nil {
		v.unread(&r, "value", r.Value)
	}
}

func (v *Schema) unread(r *Record, what string, b []byte) {
	if !framed(b) {
		v.add(r, "the %s is not in Avro: %.100q", what, b)
		return
	}
	v.add(r, "the %s names schema %d, which the registry does not have, or whose values are others", what,
		binary.BigEndian.Uint32(b[1:]))
}
