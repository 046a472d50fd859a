package envelope

import (
	"encoding/binary"
	"fmt"
	"time"

	"blobfeed/internal/plain"
)

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
