package verify

import (
	"bytes"
	"strings"
)

// Failures of records without the needed fields.
const (
	noID      = "the record identifies no event: it has no headers, and its value has neither event_id nor updated"
	noUpdated = "the record has no time: it has no headers, and its value has no updated"
)

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

// Updated returns the time of an event, or of a row, as the record has it.
func (r *Record) Updated() string { return string(r.updated()) }

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

// identity returns what identifies an event, also as text: its id, or else its key and its time. A row is identified by
// its scan and its key.
func (r *Record) identity() (x id, text []byte, ok bool) {
	if scan, ok := r.scan(); ok {
		text = append(append(append(text, scan...), r.kind()), r.Key...)
		return hashed(text), text, true
	}
	if text = r.eventID(); len(text) > 0 {
		return idOf(text), text, true
	}
	if text = r.updated(); len(text) > 0 && r.bare() {
		return idOf(append(append(append([]byte(nil), r.Key...), 0), text...)), text, true
	}
	return id{}, nil, false
}

// deletion is the kind of a deletion of a sweep.
const deletion = 2

// kind separates the row of a scan from a deletion of its sweep: an event between them can have written the key again.
func (r *Record) kind() byte {
	switch {
	case r.Value == nil:
		return deletion
	case len(r.Value) == 0:
		return 1 // a row of ENVELOPE=key_only, or a deletion of DELETES=empty
	}
	if d := r.document(); d.blob == nil && !d.unread {
		return deletion
	}
	return 0
}

// scan returns the id of the scan that a record is a row of.
func (r *Record) scan() (id []byte, ok bool) {
	if r.Key == nil {
		return nil, false
	}
	return r.lookup("scan")
}

// Scanned reports whether a record is a row of a scan, and so no event.
func (r *Record) Scanned() bool {
	_, ok := r.scan()
	return ok
}

// early reports whether a row has another updated than the time of its page.
func (r *Record) early(updated clock) bool {
	return r.Millis != 0 && updated.wall/1e6 != uint64(r.Millis)
}

// BeforeFeed returns the updated of a row of an initial scan, "" of other records.
func (r *Record) BeforeFeed() string {
	if updated, ok := parseClock(r.updated()); ok && r.Scanned() && r.early(updated) {
		return updated.String()
	}
	return ""
}
