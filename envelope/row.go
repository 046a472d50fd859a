package envelope

import (
	"slices"
	"strconv"
	"strings"

	"blobfeed/source/ocf"
)

// appendRow appends the row: every column, sorted by name.
func (e *Encoder) appendRow(b []byte, ev *ocf.Event, container, blob string) []byte {
	b = appendText(append(b, `{"account": `...), e.accountOf(ev))
	b = appendText(append(b, `, "api": `...), ev.API)
	b = appendPairs(append(b, `, "async_operation_info": `...), ev.AsyncOperationInfo)
	b = appendText(append(b, `, "blob": `...), blob)
	b = appendProperties(append(b, `, "blob_properties_updated": `...), ev.BlobPropertiesUpdated)
	b = appendTags(append(b, `, "blob_tags_updated": `...), ev.BlobTagsUpdated)
	b = appendText(append(b, `, "blob_tier": `...), ev.BlobTier)
	b = appendText(append(b, `, "blob_type": `...), ev.BlobType)
	b = appendText(append(b, `, "blob_version": `...), ev.BlobVersion)
	b = appendText(append(b, `, "client_request_id": `...), ev.ClientRequestID)
	b = appendText(append(b, `, "container": `...), container)
	b = appendText(append(b, `, "container_version": `...), ev.ContainerVersion)
	b = append(b, `, "content_length": `...)
	if ev.HasContentLength {
		b = strconv.AppendInt(b, ev.ContentLength, 10)
	} else {
		b = append(b, "null"...)
	}
	b = appendText(append(b, `, "content_type": `...), ev.ContentType)
	b = appendText(append(b, `, "etag": `...), ev.ETag)
	b = appendText(append(b, `, "event_id": `...), ev.ID)
	b = appendText(append(b, `, "event_time": `...), ev.EventTime)
	b = appendText(append(b, `, "event_type": `...), ev.EventType)
	b = appendPairs(append(b, `, "extra": `...), ev.Extra)
	b = append(b, `, "path": `...)
	b = appendPath(b, container, blob)
	b = appendPairs(append(b, `, "previous_info": `...), ev.PreviousInfo)
	b = appendText(append(b, `, "request_id": `...), ev.RequestID)
	b = appendPairs(append(b, `, "restore_point_marker": `...), ev.RestorePointMarker)
	b = strconv.AppendInt(append(b, `, "schema_version": `...), ev.SchemaVersion, 10)
	b = appendText(append(b, `, "sequencer": `...), ev.Sequencer)
	b = appendText(append(b, `, "snapshot": `...), ev.Snapshot)
	b = appendText(append(b, `, "url": `...), ev.URL)
	return append(b, '}')
}

// appendPath appends "container/blob" as a JSON string.
func appendPath(b []byte, container, blob string) []byte {
	b = appendString(b, container)
	if blob == "" {
		return b
	}
	b[len(b)-1] = '/' // the closing quote
	i := len(b)
	b = appendString(b, blob)
	return append(b[:i], b[i+1:]...) // the second opening quote
}

// appendPairs appends a map as an object, its keys sorted; null if it is empty. Of a key that is there twice the last
// one counts, as in Avro maps.
func appendPairs(b []byte, pairs []ocf.Pair) []byte {
	if len(pairs) == 0 {
		return append(b, "null"...)
	}
	return appendObject(b, pairs, func(p ocf.Pair) string { return p.Name }, func(b []byte, p ocf.Pair) []byte { return appendString(b, p.Value) })
}

func appendProperties(b []byte, changes []ocf.PropertyChange) []byte {
	if len(changes) == 0 {
		return append(b, "null"...)
	}
	return appendObject(b, changes, func(c ocf.PropertyChange) string { return c.Name }, func(b []byte, c ocf.PropertyChange) []byte {
		b = appendString(append(b, `{"current": `...), c.Current)
		b = appendString(append(b, `, "previous": `...), c.Previous)
		return append(b, '}')
	})
}

func appendTags(b []byte, sets []ocf.TagSet) []byte {
	if len(sets) == 0 {
		return append(b, "null"...)
	}
	return appendObject(b, sets, func(s ocf.TagSet) string { return s.Name }, func(b []byte, s ocf.TagSet) []byte {
		if len(s.Tags) == 0 {
			return append(b, "{}"...) // all tags removed, which null would not say
		}
		return appendPairs(b, s.Tags)
	})
}

// appendObject sorts entries in place: the event is the encoder's while it encodes, and order means nothing in a map.
func appendObject[T any](b []byte, entries []T, name func(T) string, value func([]byte, T) []byte) []byte {
	slices.SortStableFunc(entries, func(a, b T) int { return strings.Compare(name(a), name(b)) })
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
