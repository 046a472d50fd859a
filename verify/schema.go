package verify

import (
	"encoding/binary"
	"encoding/json"
)

// Path returns the path of the blob that a record's key names, in any format. No path starts like JSON, or with a zero
// byte, because no container's name does.
func (r *Record) Path() string {
	key := r.Key
	var array []string
	var object struct{ Path string }
	switch {
	case len(key) > 0 && key[0] == '[' && json.Unmarshal(key, &array) == nil && len(array) == 1:
		return array[0]
	case len(key) > 0 && key[0] == '{' && json.Unmarshal(key, &object) == nil:
		return object.Path
	case framed(key): // a record with one field, in a union with null
		if size, n := binary.Varint(key[min(6, len(key)):]); n > 0 && size == int64(len(key)-6-n) {
			return string(key[6+n:])
		}
	}
	return string(key)
}

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

// Time checks that the timestamp of each record is the time of its event, from the header updated, or without headers
// from the value. If the broker sets the timestamps, or the event has no time, nothing is checked. Time keeps nothing.
type Time struct{ failures }

// NewTime returns a Time.
func NewTime() *Time { return &Time{} }

// Note implements Validator.
func (v *Time) Note(r Record) {
	if r.Key == nil || r.Millis == 0 || r.Scanned() {
		return
	}
	updated, ok := parseClock(r.Updated())
	if !ok {
		return
	}
	v.checked++
	if uint64(r.Millis) != updated.wall/1e6 {
		v.add(&r, "the record has timestamp %d, but its event %d", r.Millis, updated.wall/1e6)
	}
}
