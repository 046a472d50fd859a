package verify

import (
	"encoding/json"
	"hash/maphash"
	"slices"
)

// Before checks that what an event says was before is what the event before it of the key left: each column that is not
// null in both, but for the ignored ones. An event whose before, or whose predecessor's after, is null is not judged. It
// keeps about 30 bytes a key and column that is not null, and the key.
type Before struct {
	failures
	ignored []string
	names   map[string]string // one copy of each column's name
	rounds  rounds
	topics  byTopic[byKey[left]]
}

// left is what an event left of a key's row.
type left struct {
	columns []column
	round   uint16
}

// column is a value of a row.
type column struct {
	name string
	sum  uint64
}

// AboutEvent are the columns that tell of the event, not of the blob: they differ from event to event.
var AboutEvent = []string{"api", "async_operation_info", "blob_properties_updated", "blob_tags_updated", "client_request_id", "event_id", "event_time",
	"event_type", "extra", "previous_info", "request_id", "restore_point_marker", "schema_version", "sequencer", "snapshot"}

// Unseen are the columns that writes change of which the feed has no event: appends to append blobs, and of pages.
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
	d := r.document()
	last, _ := v.topics.at(r.Topic).at(r.Key)
	if d.before != nil && last.columns != nil && last.round == round {
		v.checked++
		for _, was := range v.columns(d.before) {
			i := slices.IndexFunc(last.columns, func(c column) bool { return c.name == was.name })
			if i >= 0 && last.columns[i].sum != was.sum {
				v.add(&r, "before has another %s than the event before left", was.name)
			}
		}
	}
	*last = left{v.columns(d.after), round}
}

// seed is the same for all, so that two validators agree.
var seed = maphash.MakeSeed()

// columns returns those of a row that count, in order of their names, so that failures are told in an order.
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
	slices.SortFunc(cs, func(a, b column) int {
		if a.name < b.name {
			return -1
		}
		return 1
	})
	return slices.Clip(cs)
}
