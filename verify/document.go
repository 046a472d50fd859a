package verify

import (
	"cmp"
	"encoding/json"
)

// document is the content of a value of any envelope, in JSON, or in Avro if its schemas are available.
type document struct {
	parsed                          bool
	id, updated, sequence, resolved []byte
	after, before                   json.RawMessage // nil where there is none, or a null
	unread                          bool            // there is a value that is none of these
	row                             bool            // the value itself is the row
	blob                            json.RawMessage // the row, wherever it is; nil where there is none
	members                         map[string]span // of a value in Avro
	upTo                            *upTo           // of a marker in a topic of its own
	path, account                   string          // of the row
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
	if d.row = row.Path != ""; !d.row {
		d.after, d.before = object(m.After), object(m.Before)
		if d.after != nil && json.Unmarshal(d.after, &row) != nil {
			return document{parsed: true, unread: true}
		}
		d.blob = d.after
	} else {
		d.blob = value
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
