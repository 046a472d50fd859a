package verify

import (
	"encoding/json"
	"hash/maphash"
	"slices"
	"strings"
)

// Before checks that the before of an event is the row that the previous event of the key left. It compares the
// columns that are not null in both, except the ignored ones. An event is not judged if its before, or the
// after of the previous event, is null, or if a row of a scan is between them. Before keeps the key, and about
// 30 bytes per key and column that is not null.
type Before struct {
	failures
	ignored []string
	names   map[string]string // one copy of each column's name
	rounds  rounds
	topics  byTopic[byKey[left]]
}

// left is the row of a key after an event.
type left struct {
	columns []column
	round   uint16
	first   bool // it may be of the feed's first schema, which calls append blobs block blobs
}

// column is a value of a row.
type column struct {
	name string
	sum  uint64
}

// AboutEvent are the columns that describe the event, not the blob: they differ from event to event.
var AboutEvent = []string{
	"api", "async_operation_info", "blob_properties_updated", "blob_tags_updated", "client_request_id", "event_id",
	"event_time", "event_type", "extra", "previous_info", "request_id", "restore_point_marker", "schema_version",
	"sequencer", "snapshot",
}

// Unseen are the columns that change without an event in the feed: by appends to append blobs, and writes of pages.
var Unseen = []string{"content_length", "etag", "blob_version", "container_version"}

// NewBefore returns a Before that does not compare the columns named.
func NewBefore(ignored ...string) *Before {
	return &Before{ignored: ignored, names: map[string]string{}}
}

// Note implements Validator.
func (v *Before) Note(r Record) {
	round := v.rounds.at(&r)
	if r.Key == nil || r.Value == nil { // a tombstone repeats the deletion before it
		return
	}
	if r.Scanned() { // it may be newer than the next event
		last, _ := v.topics.at(r.Topic).at(r.Key)
		*last = left{}
		return
	}
	d := r.document()
	last, _ := v.topics.at(r.Topic).at(r.Key)
	if d.before != nil && last.columns != nil && last.round == round {
		v.checked++
		for _, was := range v.columns(d.before) {
			i := slices.IndexFunc(last.columns, func(c column) bool { return c.name == was.name })
			if i >= 0 && last.columns[i].sum != was.sum && !(last.first && was == appendBlob) {
				v.add(&r, "before has another %s than the previous event left", was.name)
			}
		}
	}
	*last = left{v.columns(d.after), round, ofFirstSchema(d.after)}
}

// appendBlob is what a deletion by a later schema says of a block blob of the first one.
var appendBlob = column{"blob_type", maphash.String(seed, `"AppendBlob"`)}

// ofFirstSchema reports whether a row may be a block blob of a schema before the third, the first one with a name for
// append blobs. Topics need not have the column.
func ofFirstSchema(row json.RawMessage) bool {
	var r struct {
		BlobType      string `json:"blob_type"`
		SchemaVersion int    `json:"schema_version"`
	}
	return json.Unmarshal(row, &r) == nil && r.BlobType == "BlockBlob" && r.SchemaVersion < 3
}

// columns returns the compared columns of a row, sorted by name, so that failures have a fixed order.
func (v *Before) columns(row json.RawMessage) []column {
	var values map[string]json.RawMessage
	if len(row) == 0 || json.Unmarshal(row, &values) != nil {
		return nil
	}
	var cs []column
	for name, value := range values {
		if string(value) == "null" || slices.Contains(v.ignored, name) {
			continue
		}
		own, known := v.names[name]
		if !known {
			own = name
			v.names[name] = own
		}
		cs = append(cs, column{own, maphash.Bytes(seed, value)})
	}
	slices.SortFunc(cs, func(a, b column) int { return strings.Compare(a.name, b.name) })
	return slices.Clip(cs)
}
