package envelope

import (
	"fmt"
	"time"

	"blobfeed/source/ocf"
)

// EventsMode chooses the events that become records.
type EventsMode uint8

// The modes.
const (
	EventsState EventsMode = iota // those that change a row
	EventsAll                     // all but Control
)

// KeyFormat is the form of keys.
type KeyFormat uint8

// The forms.
const (
	KeyJSONArray  KeyFormat = iota // ["container/blob"]
	KeyJSONObject                  // {"path": "container/blob"}
	KeyString                      // container/blob, as it is
)

// HeaderMode chooses the headers of records.
type HeaderMode uint8

// The modes.
const (
	HeadersCloudEvents HeaderMode = iota
	HeadersNone
)

// Options are the settings of an Encoder.
type Options struct {
	Account    string // of events whose topic names none
	Events     EventsMode
	Updated    bool // "updated" in the value
	KeyInValue bool // "key" in the value, always as an array, as CockroachDB has it
	KeyFormat  KeyFormat
	Headers    HeaderMode
}

// Header is a record header.
type Header struct {
	Key   string
	Value []byte
}

// Record is a Kafka record but for its topic and partition. Its bytes belong to the buffer it was appended to.
type Record struct {
	Key, Value []byte
	Headers    []Header
	Millis     int64 // record timestamp: the event's time
	Updated    Timestamp
	Kind       Kind
}

// Encoder writes records in the wrapped envelope, as JSON.
type Encoder struct{ o Options }

// NewEncoder returns an encoder.
func NewEncoder(o Options) (*Encoder, error) {
	if o.Events > EventsAll || o.KeyFormat > KeyString || o.Headers > HeadersNone {
		return nil, fmt.Errorf("envelope options %+v are out of range", o)
	}
	return &Encoder{o}, nil
}

// span is a part of the buffer: the buffer may move while a record is appended, so slices are taken at the end.
type span struct{ from, to int }

// Append appends the record of ev to buf and points r at it; r.Headers is reused. Emit is false for an event that the
// settings leave out. An error names the event; then the record is not to be used.
func (e *Encoder) Append(buf []byte, r *Record, ev *ocf.Event, pos Position) (out []byte, emit bool, err error) {
	r.Kind = Classify(ev)
	if r.Kind == Control || r.Kind == Other && e.o.Events == EventsState {
		return buf, false, nil
	}
	container, blob, ok := subject(ev.Subject)
	if !ok {
		return buf, false, fmt.Errorf("event %s of type %s: subject %q names no blob", ev.ID, ev.EventType, ev.Subject)
	}
	wall, err := parseTime(ev.EventTime)
	if err != nil {
		return buf, false, fmt.Errorf("event %s of type %s: %w", ev.ID, ev.EventType, err)
	}
	r.Updated = Timestamp{Wall: wall, Logical: logical(ev.Sequencer)}
	r.Millis = wall / int64(time.Millisecond)

	key := span{from: len(buf)}
	buf = e.appendKey(buf, container, blob)
	key.to = len(buf)

	value := span{from: len(buf)}
	buf = append(buf, `{"after": `...)
	if r.Kind == Delete {
		buf = append(buf, "null"...)
	} else {
		buf = e.appendRow(buf, ev, container, blob)
	}
	if e.o.KeyInValue {
		buf = append(buf, `, "key": `...)
		buf = appendArray(buf, container, blob)
	}
	updated := span{}
	if e.o.Updated {
		buf = append(buf, `, "updated": "`...)
		updated.from = len(buf)
		buf = r.Updated.AppendText(buf)
		updated.to = len(buf)
		buf = append(buf, '"')
	}
	buf = append(buf, '}')
	value.to = len(buf)

	if e.o.Headers == HeadersCloudEvents {
		buf = appendHeaders(buf, r, ev, pos, updated)
	} else {
		r.Headers = r.Headers[:0]
	}
	r.Key = buf[key.from:key.to:key.to]
	r.Value = buf[value.from:value.to:value.to]
	return buf, true, nil
}

func (e *Encoder) appendKey(b []byte, container, blob string) []byte {
	switch e.o.KeyFormat {
	case KeyJSONObject:
		return append(appendPath(append(b, `{"path": `...), container, blob), '}')
	case KeyString:
		b = append(b, container...)
		if blob != "" {
			b = append(append(b, '/'), blob...)
		}
		return b
	}
	return appendArray(b, container, blob)
}

func appendArray(b []byte, container, blob string) []byte {
	return append(appendPath(append(b, '['), container, blob), ']')
}

func (e *Encoder) accountOf(ev *ocf.Event) string {
	if a := account(ev.Topic); a != "" {
		return a
	}
	return e.o.Account
}

// Resolved returns a marker: no record with an updated time at or below ts follows it on its partition.
func (e *Encoder) Resolved(ts Timestamp) Record {
	text := ts.AppendText(nil)
	r := Record{Value: fmt.Appendf(nil, `{"resolved":"%s"}`, text), Millis: ts.Wall / int64(time.Millisecond), Updated: ts}
	if e.o.Headers == HeadersCloudEvents {
		r.Headers = []Header{{Key: "resolved", Value: text}}
	}
	return r
}
