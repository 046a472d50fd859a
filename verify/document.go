package verify

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"

	"blobfeed/source/ocf"
)

// document is the content of a value of any envelope, in JSON, or in Avro if its schemas are available.
type document struct {
	parsed                          bool
	id, updated, sequence, resolved []byte
	unread                          bool            // there is a value that is no document
	blob                            json.RawMessage // the row, wherever it is; nil where there is none
	members                         map[string]span // of a value in Avro
	upTo                            *upTo           // of a marker in a topic of its own
	account                         string          // of the row
}

// columns are those of the row that identify the event.
type columns struct {
	EventID   string `json:"event_id"`
	Sequencer string `json:"sequencer"`
	Path      string `json:"path"`
	Account   string `json:"account"`
}

// upTo is the offset in the topic of records that a marker in a topic of its own names.
type upTo struct {
	Partition *int32 `json:"partition"`
	Offset    *int64 `json:"offset"`
}

// members are those of all envelopes: wrapped, enriched (also inside a payload), and row and bare, where the value is
// the row and the other members are in __crdb__.
type members struct {
	columns
	Payload  json.RawMessage `json:"payload"`
	After    json.RawMessage `json:"after"`
	Updated  string          `json:"updated"`
	Resolved string          `json:"resolved"`
	Record   json.RawMessage `json:"record"`
	upTo
	Sentinel struct {
		Updated  string `json:"updated"`
		Resolved string `json:"resolved"`
	} `json:"__crdb__"`
	Source struct {
		columns
		Time string `json:"ts_hlc"`
	} `json:"source"`
}

func parseDocument(value []byte) document {
	d := document{parsed: true}
	var m members
	if len(value) == 0 || value[0] != '{' || json.Unmarshal(value, &m) != nil {
		d.unread = len(value) > 0
		return d
	}
	if len(m.Payload) > 0 && m.Payload[0] == '{' {
		return parseDocument(m.Payload)
	}
	if m.Record != nil { // the bare envelope in Avro
		m.After = m.Record
	}
	if m.Partition != nil && m.Offset != nil {
		d.upTo = &m.upTo
	}
	row := m.columns
	if d.blob = value; row.Path == "" {
		d.blob = object(m.After)
		if d.blob != nil && json.Unmarshal(d.blob, &row) != nil {
			return document{parsed: true, unread: true}
		}
	}
	d.account = cmp.Or(row.Account, m.Source.Account)
	d.id = []byte(cmp.Or(row.EventID, m.Source.EventID))
	d.sequence = []byte(cmp.Or(row.Sequencer, m.Source.Sequencer))
	d.updated = []byte(cmp.Or(m.Updated, m.Sentinel.Updated, m.Source.Time))
	d.resolved = []byte(cmp.Or(m.Resolved, m.Sentinel.Resolved))
	return d
}

// object returns a JSON object, or nil of anything else.
func object(m json.RawMessage) json.RawMessage {
	if len(m) == 0 || m[0] != '{' {
		return nil
	}
	return m
}

// Avro reads values in Confluent's framing: a zero byte, the id of a schema, the body. It looks up each schema once.
// A registry, and whoever may write to the topic, are not trusted: memory and time are bounded by the size of a value.
type Avro struct {
	schema func(id int) (text string, err error)
	known  map[int]*ocf.Schema
	failed error
}

// NewAvro returns an Avro that looks up schemas with a function. The function returns "" for an unknown id.
func NewAvro(schema func(id int) (text string, err error)) *Avro {
	return &Avro{schema: schema, known: map[int]*ocf.Schema{}}
}

// Err returns the first error of a look-up. Values of that schema were not read, so nothing is proved.
func (a *Avro) Err() error { return a.failed }

// framed reports whether a value may be in Avro.
func framed(value []byte) bool { return len(value) >= 5 && value[0] == 0 }

// JSON returns a value as JSON without null members, or nil if its schema is unknown.
func (a *Avro) JSON(value []byte) []byte {
	text, _ := a.read(value)
	return text
}

// span is a part of a value.
type span struct{ from, to int }

// read also returns the spans of the members of the top level.
func (a *Avro) read(value []byte) (text []byte, spans map[string]span) {
	if a == nil || !framed(value) {
		return nil, nil
	}
	s := a.at(int(binary.BigEndian.Uint32(value[1:])))
	if s == nil {
		return nil, nil
	}
	members, err := s.Members(string(value[5:]))
	if err != nil {
		return nil, nil
	}
	spans, text = map[string]span{}, []byte{'{'}
	for _, m := range members {
		spans[m.Name] = span{m.From + 5, m.To + 5}
		if string(m.JSON) == "null" {
			continue
		}
		if len(text) > 1 {
			text = append(text, ',')
		}
		name, err := json.Marshal(m.Name) // a hostile schema may have any
		if err != nil {
			return nil, nil
		}
		text = fmt.Appendf(text, "%s:%s", name, m.JSON)
	}
	return append(text, '}'), spans
}

func (a *Avro) at(id int) *ocf.Schema {
	s, known := a.known[id]
	if known {
		return s
	}
	text, err := a.schema(id)
	if err == nil && text != "" {
		if s, err = ocf.ParseSchema(text); err != nil {
			err = fmt.Errorf("parsing Avro schema %d: %w", id, err)
		}
	}
	if err != nil && a.failed == nil {
		a.failed = err
	}
	a.known[id] = s
	return s
}

// Row is what a record leaves of its key: nothing, or a blob.
type Row struct {
	Deleted bool
	ETag    string
	Length  int64
	Type    string // BlockBlob, …
}

// Values says in which form values are.
type Values struct {
	Bare bool // a deletion is a row with nothing but its key
	None bool // there are none: no bytes are not a deletion
}

// Row returns what a record leaves of its key, as far as its value says.
func (r *Record) Row(in Values) (row Row, err error) {
	if len(r.Value) == 0 {
		return Row{Deleted: r.Value == nil || !in.None}, nil
	}
	d := r.document()
	if d.unread {
		return row, errors.New("the value can't be read")
	}
	if d.blob == nil {
		return Row{Deleted: true}, nil
	}
	var columns struct {
		ETag   string `json:"etag"`
		Length int64  `json:"content_length"`
		Type   string `json:"blob_type"`
	}
	if err := json.Unmarshal(d.blob, &columns); err != nil {
		return row, err
	}
	row = Row{ETag: columns.ETag, Length: columns.Length, Type: columns.Type}
	if in.Bare {
		row.Deleted, err = onlyKey(d.blob)
	}
	return row, err
}

// onlyKey reports whether all columns of a row are null but the key, which is how the bare envelope has a deletion.
func onlyKey(row []byte) (bool, error) {
	var columns map[string]json.RawMessage
	if err := json.Unmarshal(row, &columns); err != nil {
		return false, err
	}
	for name, value := range columns {
		if string(value) != "null" && name != "__crdb__" && name != "path" {
			return false, nil
		}
	}
	return true, nil
}

// The enriched envelope has the time at which the record was made, which differs between two deliveries of an event.
// Only its members ts_ms and ts_ns at the top may differ.

// withoutEncodingTime returns a value without the digits of these members, or the value itself if it has none.
func (r *Record) withoutEncodingTime() []byte {
	var spans []span
	if framed(r.Value) {
		r.document()
		for _, name := range [...]string{"ts_ns", "ts_ms"} { // in their order
			if s, ok := r.doc.members[name]; ok {
				spans = append(spans, s)
			}
		}
	} else {
		// In JSON they are the last members, which are sorted by name; a schema behind them has no such members, and in
		// a string there is a backslash before the quote.
		for _, name := range [...]string{`"ts_ms": `, `"ts_ns": `} {
			at := bytes.LastIndex(r.Value, []byte(name))
			if at < 0 {
				return r.Value
			}
			at += len(name)
			_, n := number(r.Value[at:])
			spans = append(spans, span{at, at + n})
		}
	}
	var rest []byte
	from := 0
	for _, s := range spans {
		if s.from < from {
			return r.Value // not as the bridge writes it
		}
		rest = append(rest, r.Value[from:s.from]...)
		from = s.to
	}
	return append(rest, r.Value[from:]...)
}
