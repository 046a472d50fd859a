package verify

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strings"
)

// Failures of records without the needed fields.
const (
	noID      = "the record identifies no event: it has no headers, and its value has neither event_id nor updated"
	noUpdated = "the record has no time: it has no headers, and its value has no updated"
)

// bare reports whether a record has none of the bridge's headers (HEADERS=none; it may have others). Only then the
// value is read instead: if headers are written, a missing one is a failure.
func (r *Record) bare() bool {
	for i := range r.Headers {
		switch r.Headers[i].Key {
		case "ce_id", "updated", "position", "sequence", "resolved":
			return false
		}
	}
	return true
}

// eventID, updated and sequence return what the headers say, or the value of a record without headers.

func (r *Record) eventID() []byte {
	if v, ok := r.lookup("ce_id"); ok || !r.bare() {
		return v
	}
	return r.document().id
}

func (r *Record) updated() []byte {
	if v, ok := r.lookup("updated"); ok || !r.bare() {
		return v
	}
	return r.document().updated
}

func (r *Record) sequence() (text []byte, present bool) {
	if v, ok := r.lookup("sequence"); ok || !r.bare() {
		return v, ok
	}
	return r.document().sequence, true
}

// Account returns the storage account that a record names in the header ce_source, or else in the row. It is "" if
// neither names one.
func (r *Record) Account() string {
	source := r.Header("ce_source")
	if i := bytes.LastIndex(source, []byte("/storageAccounts/")); i >= 0 {
		name, _, _ := bytes.Cut(source[i+len("/storageAccounts/"):], []byte("/"))
		return strings.ToLower(string(name))
	}
	return strings.ToLower(r.document().account)
}

// Says reports whether a record identifies its event, and whether it has its time, in headers or in the value.
func (r *Record) Says() (event, time bool) {
	_, _, event = r.identity()
	_, time = parseClock(r.updated())
	return event, time
}

// Sequenced reports whether a record has its event's sequencer, in a header or in the value.
func (r *Record) Sequenced() bool {
	text, _ := r.sequence()
	return len(text) > 0
}

// identity returns what identifies an event, also as text: its id, or else its key and its time.
func (r *Record) identity() (x id, text []byte, ok bool) {
	if text = r.eventID(); len(text) > 0 {
		return idOf(text), text, true
	}
	if text = r.updated(); len(text) > 0 && r.bare() {
		return idOf(append(append(append([]byte(nil), r.Key...), 0), text...)), text, true
	}
	return id{}, nil, false
}

// document is the content of a value of any envelope, in JSON, or in Avro if its schemas are available.
type document struct {
	parsed                          bool
	id, updated, sequence, resolved []byte
	after, before                   json.RawMessage // nil where there is none, or a null
	row                             bool            // the value itself is the row
	members                         map[string]span // of a value in Avro
	upTo                            *upTo           // of a marker in a topic of its own
	path, account                   string          // of the row
}

func (r *Record) document() *document {
	if r.doc == nil {
		r.doc = &document{}
	}
	if !r.doc.parsed {
		text, members := r.Avro.read(r.Value)
		if members == nil {
			text = r.Value
		}
		*r.doc = parseDocument(text)
		r.doc.members = members
	}
	return r.doc
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
	Before   json.RawMessage `json:"before"`
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
	if d.row = row.Path != ""; !d.row {
		d.after, d.before = object(m.After), object(m.Before)
		if d.after != nil && json.Unmarshal(d.after, &row) != nil {
			return document{parsed: true}
		}
	}
	first := func(texts ...string) []byte {
		for _, t := range texts {
			if t != "" {
				return []byte(t)
			}
		}
		return nil
	}
	d.path, d.account = row.Path, cmp.Or(row.Account, m.Source.Account)
	d.id = first(row.EventID, m.Source.EventID)
	d.sequence = first(row.Sequencer, m.Source.Sequencer)
	d.updated = first(m.Updated, m.Sentinel.Updated, m.Source.Time)
	d.resolved = first(m.Resolved, m.Sentinel.Resolved)
	return d
}

// object returns a JSON object, or nil of anything else.
func object(m json.RawMessage) json.RawMessage {
	if len(m) == 0 || m[0] != '{' {
		return nil
	}
	return m
}
