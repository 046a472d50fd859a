package envelope

import (
	"cmp"
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

// blobs is the table of blobs: the fields of ocf.Event that have a column, and what is made of them. Strings are as the
// feed has them, also the times of versions and snapshots. Columns are sorted by name here.
func blobs(topic string, timestamps AvroTimestamps) table {
	t := table{name: AvroName(topic), upTo: []column{{name: "partition", field: unset}, {name: "offset", field: unset}},
		before: blobBefore}
	key := column{name: "path", field: path{}}
	t.key = []column{key}
	t.columns = []column{
		key,
		{name: "account", field: text(func(r *row) string { return r.account })},
		{name: "blob", field: text(func(r *row) string { return r.blob })},
		{name: "container", field: text(func(r *row) string { return r.container })},
	}
	change := newRecord(t.name+"_property", []column{{name: "current", field: never}, {name: "previous", field: never}},
		same)
	change.connectName = topic + ".property"
	for _, f := range ocf.Fields {
		if f.Column != "" {
			t.columns = append(t.columns, column{name: f.Column, field: fieldOf(f, timestamps, change)})
		}
	}
	t.source = []column{
		{name: "changefeed_sink", field: text(func(*row) string { return "kafka" })},
		{name: "origin", field: text(func(r *row) string {
			if r.scan != nil {
				return "azure_blob_listing"
			}
			return "azure_blob_change_feed"
		})},
		{name: "position", field: ascii(func(r *row) []byte { return r.position })},
		{name: "primary_keys", field: list{"path"}},
	}
	for _, c := range t.columns {
		switch c.name {
		case "account", "api", "container", "event_id", "event_type", "sequencer":
			t.source = append(t.source, c)
		}
	}
	sortColumns(t.columns)
	sortColumns(t.source)
	return t
}

func sortColumns(columns []column) {
	slices.SortFunc(columns, func(a, b column) int { return cmp.Compare(a.name, b.name) })
}

// fieldOf returns the column of a field of the event. Change is the record of a property that was updated.
func fieldOf(f *ocf.Field, timestamps AvroTimestamps, change *record) field {
	switch f.Shape {
	case ocf.Number:
		return integer(func(r *row) (int64, bool) { return f.Number(r.ev) })
	case ocf.Map:
		return pairs(f.Map)
	case ocf.Properties:
		return properties{change}
	case ocf.Tags:
		return tags{}
	}
	if f.Column != "event_time" {
		return text(func(r *row) string { return f.Text(r.ev) })
	}
	eventTime := text(func(r *row) string {
		if r.scan != nil { // the listing knows when the blob was written, not what happened then
			return ""
		}
		return r.ev.EventTime
	})
	if timestamps == Text {
		return eventTime
	}
	return instant{eventTime, [...]int64{Micros: 1e3, Millis: 1e6}[timestamps], timestamps.String()}
}

// blobBefore fills prev, unless it is nil, with what ev says about the row before it, and reports whether ev says
// anything. It never guesses: from a deletion it takes the blob's properties, which the service repeats, but not the
// etag, which is the deletion's own.
func blobBefore(ev, prev *ocf.Event) (told bool) {
	if prev == nil {
		prev = new(ocf.Event) // stays on the stack
	}
	*prev = ocf.Event{}
	if Classify(ev) == Delete {
		told = true
		for _, f := range repeated {
			f.Copy(prev, ev)
		}
	}
	for _, p := range ev.PreviousInfo {
		told = set(prev, previousInfo[p.Name], p.Value) || told
	}
	for _, c := range ev.BlobPropertiesUpdated {
		told = set(prev, updated[c.Name], c.Previous) || told
	}
	return told
}

func set(ev *ocf.Event, f *ocf.Field, text string) bool {
	if f != nil {
		f.SetText(ev, text)
	}
	return f != nil
}

// The fields of which an event says what they were: all of them by a deletion, the others by these names.
var repeated, previousInfo, updated = tellers()

func tellers() (repeated []*ocf.Field, previousInfo, updated map[string]*ocf.Field) {
	previousInfo, updated = map[string]*ocf.Field{}, map[string]*ocf.Field{}
	for _, f := range ocf.Fields {
		if f.Deletion {
			repeated = append(repeated, f)
		}
		if f.Previous != "" {
			previousInfo[f.Previous] = f
		}
		if f.Property != "" {
			updated[f.Property] = f
		}
	}
	return repeated, previousInfo, updated
}

// op is Debezium's name for what an event does. The feed does not distinguish a first write from a later one unless it
// says something about the row before. Readers with a primary key treat a "c" of a known row as an update.
func op(r *row) string {
	switch {
	case r.kind == Delete:
		return "d"
	case r.scan != nil:
		return "r" // read, in Debezium's words
	case (r.ev.EventType == "BlobCreated" || r.ev.API == "UndeleteBlob") && !r.told:
		return "c"
	}
	return "u"
}

func toldBefore(r *row) *row {
	if r.told {
		return r.before
	}
	return nil
}

func existedBefore(r *row) *row {
	switch op(r) {
	case "c", "r":
		return nil
	}
	return r.before
}
