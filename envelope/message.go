package envelope

import (
	"cmp"
	"slices"
	"time"
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

func hlc(b []byte, r *row) []byte { return append(b, r.hlc...) }

func mvcc(b []byte, r *row) []byte { return append(b, r.mvcc...) }

func madeAt(r *row) (int64, bool) { return r.now, true }

func after(r *row) *row {
	if r.kind == Delete {
		return nil
	}
	return r
}
