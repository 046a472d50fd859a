package envelope

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"blobfeed/internal/plain"
)

// envelopeName ends the full name of the enriched envelope's record. Debezium's transformations accept no other name.
const envelopeName = "Envelope"

// message returns the record that is the value; nil if every value is empty. Columns are in Avro's order:
// CockroachDB's, then those that CockroachDB lacks.
func (o *Options) message(t *table) *record {
	if o.Format == JSON {
		switch o.Envelope {
		case KeyOnly:
			return nil
		case Bare, Row:
			return o.plain(t)
		}
	}
	var m columns
	switch o.Envelope {
	case Wrapped:
		m.add(o.Diff, "before", o.part(t, "before", t.columns, toldBefore))
		m.add(true, "after", o.part(t, "", t.columns, after))
		m.add(o.Updated, "updated", ascii(hlc))
		m.add(o.MVCCTimestamp, "mvcc_timestamp", ascii(mvcc))
	case Enriched:
		m.add(!o.NoBefore, "before", o.before(t))
		m.add(true, "after", o.part(t, "", t.columns, after))
	}
	m.add(o.Format == Avro && o.Markers == MarkersInline, "resolved", never) // by marker only
	m.add(o.Envelope == Bare, "record", o.bare(t))
	if o.Envelope == Enriched {
		m.add(o.Properties&Source != 0, "source", o.source(t))
		m = append(m, column{name: "ts_ns", field: integer(madeAt), required: true},
			column{name: "op", field: text(op), required: true},
			column{name: "ts_ms", field: integer(func(r *row) (int64, bool) {
				return r.now / int64(time.Millisecond), true
			}), required: true})
	}
	m.add(o.KeyInValue, "key", o.key(t))
	m.add(o.TopicInValue, "topic", text(func(*row) string { return o.Topic }))
	if len(m) == 0 {
		return nil
	}
	envelope := newRecord(t.name+"_envelope", m, same)
	if o.Envelope == Enriched {
		envelope.name, envelope.namespace, envelope.connectName = envelopeName, t.name, o.Topic+"."+envelopeName
	}
	return envelope
}

type columns []column

func (c *columns) add(when bool, name string, f field) {
	if when {
		*c = append(*c, column{name: name, field: f})
	}
}

// part is a record that holds a row, whole or in part.
func (o *Options) part(t *table, name string, c []column, of func(*row) *row) *record {
	avro := t.name
	if name != "" {
		avro += "_" + name
	}
	f := newRecord(avro, c, of)
	f.connectName = o.Topic + "." + cmp.Or(name, "after") + ".value"
	return f
}

// before is the field of the enriched envelope. With Avro it has all columns: readers want one type for before and
// after.
func (o *Options) before(t *table) *record {
	switch {
	case o.Diff:
		return o.part(t, "before", t.columns, existedBefore)
	case o.Format == Avro:
		return o.part(t, "before", onlyKey(t.columns, t.key), existedBefore)
	}
	return o.part(t, "before", t.key, existedBefore)
}

// bare is the row of the bare envelope. For a deletion it is not null, but has the key only.
func (o *Options) bare(t *table) *record {
	f := newRecord(t.name, t.columns, same)
	f.deleted = newRecord(t.name, onlyKey(t.columns, t.key), same)
	return f
}

// plain is the row with the metadata in it. It has "__crdb__" for that, so that no column is hidden.
func (o *Options) plain(t *table) *record {
	var m columns
	m.add(o.KeyInValue, "key", o.key(t))
	m.add(o.MVCCTimestamp, "mvcc_timestamp", ascii(mvcc))
	m.add(o.TopicInValue, "topic", text(func(*row) string { return o.Topic }))
	m.add(o.Updated, "updated", ascii(hlc))
	if m == nil {
		return o.bare(t)
	}
	with := *t
	with.columns = append([]column{{name: "__crdb__", field: newRecord("", m, same)}}, t.columns...)
	with.key = append([]column{{name: "__crdb__"}}, t.key...)
	return o.bare(&with)
}

// key is the key in the value: an array of columns, as CockroachDB has it, but of the enriched envelope.
func (o *Options) key(t *table) field {
	f := newRecord(t.name+"_key", t.key, same)
	f.connectName = o.Topic + ".key"
	if o.Envelope == Enriched {
		return f
	}
	return keyArray{f}
}

func (o *Options) source(t *table) *record {
	c := columns(slices.Clone(t.source))
	c.add(o.Updated, "ts_hlc", ascii(hlc))
	c.add(o.Updated, "ts_ms", integer(func(r *row) (int64, bool) {
		return r.updated.Wall / int64(time.Millisecond), true
	}))
	c.add(o.Updated, "ts_ns", integer(func(r *row) (int64, bool) { return r.updated.Wall, true }))
	c.add(o.MVCCTimestamp, "mvcc_timestamp", ascii(mvcc))
	sortColumns(c)
	f := newRecord("source", c, same)
	f.connectName = o.Topic + ".source"
	return f
}

func hlc(r *row) []byte { return r.hlc }

func mvcc(r *row) []byte { return r.mvcc }

func madeAt(r *row) (int64, bool) { return r.now, true }

func after(r *row) *row {
	if r.kind == Delete {
		return nil
	}
	return r
}

// Resolved returns a marker: no record with an updated time at or below ts follows it on its partition. It is the zero
// Record if markers are off.
func (e *Encoder) Resolved(ts Timestamp) Record {
	text := ts.AppendText(nil)
	switch {
	case e.o.Markers == MarkersOff:
		return Record{}
	case e.o.Format == Avro:
		value := e.resolvedIn().marker(e.markerHead[:len(e.markerHead):len(e.markerHead)], string(text))
		return e.marker(ts, text, value)
	case e.tail != nil: // Kafka Connect takes no value without a schema where it takes one with
		return e.marker(ts, text, fmt.Appendf(nil, `{"payload": {"resolved":"%s"}, "schema": {%s}}`, text,
			e.resolvedIn().connect(false)))
	case e.o.Envelope == Wrapped || e.o.Envelope == Enriched || e.o.Markers == MarkersTopic:
		return e.marker(ts, text, fmt.Appendf(nil, `{"resolved":"%s"}`, text))
	}
	return e.marker(ts, text, fmt.Appendf(nil, `{"__crdb__":{"resolved":"%s"}}`, text))
}

// ResolvedUpTo returns the marker of a partition for the topic of markers: the records of the data topic's partition
// with an updated time at or below ts have offsets below end. A consumer of both topics needs that offset to know how
// far to read the data topic.
func (e *Encoder) ResolvedUpTo(ts Timestamp, partition int32, end int64) Record {
	r := e.Resolved(ts)
	if e.o.Format == Avro { // behind the time, and null in Resolved
		b := append(r.Value[:len(r.Value)-2], present)
		b = append(binary.AppendVarint(b, int64(partition)), present)
		r.Value = binary.AppendVarint(b, end)
		return r
	}
	text := r.Updated.AppendText(nil)
	r.Value = fmt.Appendf(nil, `{"resolved":"%s","partition":%d,"offset":%d}`, text, partition, end)
	if e.tail != nil {
		r.Value = fmt.Appendf(nil, `{"payload": %s, "schema": {%s}}`, r.Value, e.resolvedIn().connect(false))
	}
	return r
}

func (e *Encoder) marker(ts Timestamp, text, value []byte) Record {
	r := Record{Value: value, Millis: ts.Wall / int64(time.Millisecond), Updated: ts}
	if e.o.Headers == HeadersCloudEvents {
		r.Headers = []Header{{Key: "resolved", Value: text}}
	}
	return r
}

// resolvedIn is the record of markers. Markers among the data share the schema of the data: with two schemas in one
// subject, a reader that asks for the latest one could get either.
func (e *Encoder) resolvedIn() *record {
	if e.o.Markers == MarkersInline && e.o.Format == Avro {
		return e.value
	}
	columns := []column{{name: "resolved", field: never}}
	if e.o.Markers == MarkersTopic {
		columns = append(columns, e.table.upTo...)
	}
	f := newRecord(e.table.name+"_envelope", columns, same)
	f.connectName = plain.MarkerTopic(e.o.Topic)
	return f
}

// Subject is a schema, and the subject of the registry that it belongs to.
type Subject struct {
	Name   string // <topic>-key, <topic>-value, <topic>.resolved-value
	Schema string // Avro's JSON, which depends on nothing but the options
}

// Schemas returns the schemas of the records that an encoder with these options writes.
func Schemas(o Options) ([]Subject, error) {
	e, err := compile(o, blobs(o.Topic, o.AvroTimestamps))
	if err != nil {
		return nil, err
	}
	return e.schemas(), nil
}

func (e *Encoder) schemas() (s []Subject) {
	if e.o.KeyFormat == KeyAvro {
		s = append(s, Subject{e.keySubject(), e.key.schema(names{})})
	}
	if e.o.Format == Avro {
		if e.value != nil {
			s = append(s, Subject{e.valueSubject(), e.value.schema(names{})})
		}
		if e.o.Markers == MarkersTopic {
			s = append(s, Subject{e.markerSubject(), e.resolvedIn().schema(names{})})
		}
	}
	return s
}

func (e *Encoder) keySubject() string   { return e.o.Topic + "-key" }
func (e *Encoder) valueSubject() string { return e.o.Topic + "-value" }

// markerSubject is the subject of the topic itself if markers are in it.
func (e *Encoder) markerSubject() string {
	if e.o.Markers == MarkersTopic {
		return plain.MarkerTopic(e.o.Topic) + "-value"
	}
	return e.valueSubject()
}

// setIDs puts the id of its schema in front of each value.
func (e *Encoder) setIDs(ids map[string]int) {
	e.keyHead = confluent(ids[e.keySubject()])
	if e.o.Format == Avro {
		e.head = confluent(ids[e.valueSubject()])
		e.markerHead = confluent(ids[e.markerSubject()])
	}
}

// KeyID is the id of the schema of keys, or 0 if they have none. It is part of the key, so another id moves keys to
// other partitions.
func (e *Encoder) KeyID() int {
	if e.o.KeyFormat != KeyAvro {
		return 0
	}
	return int(binary.BigEndian.Uint32(e.keyHead[1:]))
}

// PinKey makes keys begin with the id of another schema of the same fields: that of the topic whose partitions they
// keep.
func (e *Encoder) PinKey(id int) {
	if e.o.KeyFormat == KeyAvro {
		e.keyHead = confluent(id)
	}
}
