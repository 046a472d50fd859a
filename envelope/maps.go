package envelope

import (
	"encoding/binary"
	"slices"
	"strings"

	"blobfeed/source/ocf"
)

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
