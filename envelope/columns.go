package envelope

import (
	"slices"

	"blobfeed/source/ocf"
)

// table is what is known of the rows. Ours is blobs; tests bring CockroachDB's own.
type table struct {
	name    string   // of the records in schemas
	key     []column // the primary key
	columns []column
	source  []column // of the enriched envelope, but for the times
	upTo    []column // of markers in a topic of their own, after the time
	// before fills prev with what ev says about the row before it, and reports whether it says anything.
	before func(ev, prev *ocf.Event) bool
}

// Chooses reports whether rows have a column, unless it is a map that Maps leaves out.
func (o *Options) Chooses(column string) bool {
	return column == "path" || !slices.Contains(o.Exclude, column) &&
		(len(o.Columns) == 0 || slices.Contains(o.Columns, column))
}

// choose leaves out the columns that the options leave out, and writes maps as they say.
func (o *Options) choose(t *table) {
	leftOut := map[string]bool{}
	t.columns = slices.Clone(t.columns)
	for i, c := range t.columns {
		leftOut[c.name] = !o.Chooses(c.name) || isMap(c.field) && o.Maps == MapsOmit
		if isMap(c.field) && o.Maps == MapsJSON {
			t.columns[i].field = mapText{c.field}
		}
	}
	gone := func(c column) bool { return leftOut[c.name] }
	t.columns, t.source = slices.DeleteFunc(t.columns, gone), slices.DeleteFunc(slices.Clone(t.source), gone)
}

// of is a column of a field of the event.
func of(name string, get func(*ocf.Event) string) column {
	return column{name: name, field: text(func(r *row) string { return get(r.ev) })}
}

// blobs is the table of blobs. Strings are as the feed has them, also the times of versions and snapshots.
func blobs(topic string, timestamps AvroTimestamps) table {
	name := AvroName(topic)
	key := column{name: "path", field: path{}}
	eventTime := column{name: "event_time", field: text(func(r *row) string {
		if r.scan != nil { // the listing knows when the blob was written, not what happened then
			return ""
		}
		return r.ev.EventTime
	})}
	if timestamps != Text {
		eventTime.field = instant{eventTime.field.(text), [...]int64{Micros: 1e3, Millis: 1e6}[timestamps],
			timestamps.String()}
	}
	change := newRecord(name+"_property", []column{{name: "current", field: never}, {name: "previous", field: never}},
		same)
	change.connectName = topic + ".property"
	account := column{name: "account", field: text(func(r *row) string { return r.account })}
	container := column{name: "container", field: text(func(r *row) string { return r.container })}
	api := of("api", func(e *ocf.Event) string { return e.API })
	eventID := of("event_id", func(e *ocf.Event) string { return e.ID })
	eventType := of("event_type", func(e *ocf.Event) string { return e.EventType })
	sequencer := of("sequencer", func(e *ocf.Event) string { return e.Sequencer })
	return table{
		name: name,
		key:  []column{key},
		columns: []column{
			account,
			api,
			{name: "async_operation_info", field: pairs(func(e *ocf.Event) []ocf.Pair { return e.AsyncOperationInfo })},
			{name: "blob", field: text(func(r *row) string { return r.blob })},
			{name: "blob_properties_updated", field: properties{change}},
			{name: "blob_tags_updated", field: tags{}},
			of("blob_tier", func(e *ocf.Event) string { return e.BlobTier }),
			of("blob_type", func(e *ocf.Event) string { return e.BlobType }),
			of("blob_version", func(e *ocf.Event) string { return e.BlobVersion }),
			of("client_request_id", func(e *ocf.Event) string { return e.ClientRequestID }),
			container,
			of("container_version", func(e *ocf.Event) string { return e.ContainerVersion }),
			{name: "content_length", field: integer(func(r *row) (int64, bool) {
				return r.ev.ContentLength, r.ev.HasContentLength
			})},
			of("content_type", func(e *ocf.Event) string { return e.ContentType }),
			of("etag", func(e *ocf.Event) string { return e.ETag }),
			eventID,
			eventTime,
			eventType,
			{name: "extra", field: pairs(func(e *ocf.Event) []ocf.Pair { return e.Extra })},
			key,
			{name: "previous_info", field: pairs(func(e *ocf.Event) []ocf.Pair { return e.PreviousInfo })},
			of("request_id", func(e *ocf.Event) string { return e.RequestID }),
			{name: "restore_point_marker", field: pairs(func(e *ocf.Event) []ocf.Pair { return e.RestorePointMarker })},
			{name: "schema_version", field: integer(func(r *row) (int64, bool) {
				return r.ev.SchemaVersion, r.ev.SchemaVersion != 0
			})},
			sequencer,
			of("snapshot", func(e *ocf.Event) string { return e.Snapshot }),
			of("url", func(e *ocf.Event) string { return e.URL }),
		},
		source: []column{
			account,
			api,
			{name: "changefeed_sink", field: text(func(*row) string { return "kafka" })},
			container,
			eventID,
			eventType,
			{name: "origin", field: text(func(r *row) string {
				if r.scan != nil {
					return "azure_blob_listing"
				}
				return "azure_blob_change_feed"
			})},
			{name: "position", field: place{func(b []byte, r *row) []byte { return append(b, r.position...) }}},
			{name: "primary_keys", field: list{"path"}},
			sequencer,
		},
		upTo:   []column{{name: "partition", field: unset}, {name: "offset", field: unset}},
		before: blobBefore,
	}
}
