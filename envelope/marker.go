package envelope

import (
	"fmt"
	"time"
)

// Resolved returns a marker: no record with an updated time at or below ts follows it on its partition. It is the zero
// Record if markers are off.
func (e *Encoder) Resolved(ts Timestamp) Record {
	if e.o.Markers == MarkersOff {
		return Record{}
	}
	text := ts.AppendText(nil)
	r := Record{Millis: ts.Wall / int64(time.Millisecond), Updated: ts}
	switch {
	case e.o.Format == Avro:
		r.Value = e.resolvedIn().marker(e.markerHead[:len(e.markerHead):len(e.markerHead)], string(text))
	case e.o.Envelope == Wrapped || e.o.Envelope == Enriched && e.tail == nil:
		r.Value = fmt.Appendf(nil, `{"resolved":"%s"}`, text)
	case e.o.Envelope == Enriched: // Kafka Connect takes no value without a schema where it takes one with
		r.Value = fmt.Appendf(nil, `{"payload": {"resolved":"%s"}, "schema": {%s}}`, text, markerRecord("", e.o.Topic).connect(false))
	default:
		r.Value = fmt.Appendf(nil, `{"__crdb__":{"resolved":"%s"}}`, text)
	}
	if e.o.Headers == HeadersCloudEvents {
		r.Headers = []Header{{Key: "resolved", Value: text}}
	}
	return r
}

// resolvedIn is the record that markers are. Those among the data are like it, with one schema for both: of two in one
// subject, readers that ask for the latest would get either.
func (e *Encoder) resolvedIn() *record {
	if e.o.Markers == MarkersInline {
		return e.value
	}
	return markerRecord(e.table.name, e.o.Topic)
}

func markerRecord(name, topic string) *record {
	f := newRecord(name+"_envelope", []column{{name: "resolved", field: never}}, same)
	f.connectName = topic + ".resolved"
	return f
}
