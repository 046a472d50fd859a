package verify

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"fmt"
	"hash/maphash"
	"strings"
)

// Record is a record of a topic. A nil key makes it a marker.
type Record struct {
	Topic      string
	Partition  int32
	Offset     int64
	Key, Value []byte
	Headers    []Header
	Millis     int64  // 0: not known
	In         string // the topic that holds it, where that is another than the one that it speaks of
	Avro       *Avro  // reads a value in Avro; nil: it is not read

	doc *document // of the value, where a Group shares it among its validators
}

// Header is a header of a record.
type Header struct {
	Key   string
	Value []byte
}

// Header returns the value of a header, or nil.
func (r *Record) Header(key string) []byte {
	v, _ := r.lookup(key)
	return v
}

func (r *Record) lookup(key string) (value []byte, ok bool) {
	for i := range r.Headers {
		if r.Headers[i].Key == key {
			return r.Headers[i].Value, true
		}
	}
	return nil, false
}

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

// Failures of records without the needed fields.
const (
	noID      = "the record identifies no event: it has no headers, and its value has neither event_id nor updated"
	noUpdated = "the record has no time: it has no headers, and its value has no updated"
)

// EventID, Updated and sequence return what the headers say, or the value of a record without headers.

// EventID returns the id of an event, as far as the record has it.
func (r *Record) EventID() []byte {
	if v, ok := r.lookup("ce_id"); ok || !r.bare() {
		return v
	}
	return r.document().id
}

// Updated returns the time of an event, or of a row.
func (r *Record) Updated() []byte {
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

// Has reports whether a record identifies its event, has its time and its sequencer, in headers or in the value.
func (r *Record) Has() (event, time, sequencer bool) {
	_, _, event = r.identity()
	_, time = parseClock(r.Updated())
	text, _ := r.sequence()
	return event, time, len(text) > 0
}

// identity returns what identifies an event, also as text: its id, or else its key and its time. A row is identified by
// its scan and its key.
func (r *Record) identity() (x id, text []byte, ok bool) {
	if scan, ok := r.scan(); ok {
		text = append(append(append(text, scan...), r.kind()), r.Key...)
		return idOf(text), text, true
	}
	if text = r.EventID(); len(text) > 0 {
		return idOf(text), text, true
	}
	if text = r.Updated(); len(text) > 0 && r.bare() {
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
	if updated, ok := parseClock(r.Updated()); ok && r.Scanned() && r.early(updated) {
		return updated.String()
	}
	return ""
}

// id is what identifies an event, in 16 bytes: two hashes. The probability of a collision among a million ids is about
// 10^-26.
type id [2]uint64

var seeds = [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}

func idOf(text []byte) id { return id{maphash.Bytes(seeds[0], text), maphash.Bytes(seeds[1], text)} }

// seed is shared, so that two validators agree.
var seed = maphash.MakeSeed()

// position is the position of an event in the feed, from the header position, as comparable numbers.
type position struct {
	segment uint64 // YYYYMMDDHHMM
	shard   uint64
	inShard [3]uint64 // chunk, offset of the block, index in it
}

// parsePosition parses 2020/05/27/1500/00/00000/1488/3: segment, shard, chunk, offset of the block, index in it.
func parsePosition(b []byte) (p position, ok bool) {
	segment := [...]int{4, 2, 2, 4} // the digits of its parts
	i := 0
	for part := range bytes.SplitSeq(b, []byte("/")) {
		v, n := number(part)
		switch {
		case n == 0 || n != len(part) || i < len(segment) && n != segment[i]:
			return p, false
		case i == 3:
			p.segment = p.segment*10000 + v
		case i < 3:
			p.segment = p.segment*100 + v
		case i == 4:
			p.shard = v
		case i < 8:
			p.inShard[i-5] = v
		}
		i++
	}
	return p, i == 8
}

// clock is a hybrid logical clock's time.
type clock struct{ wall, logical uint64 }

// parseClock parses "<nanoseconds>.<10 digits>".
func parseClock(b []byte) (c clock, ok bool) {
	n, m := 0, 0
	if c.wall, n = number(b); n == 0 || n == len(b) || b[n] != '.' {
		return c, false
	}
	c.logical, m = number(b[n+1:])
	return c, m == 10 && n+1+m == len(b)
}

func (c clock) compare(o clock) int {
	return cmp.Or(cmp.Compare(c.wall, o.wall), cmp.Compare(c.logical, o.logical))
}

// number reads decimal digits, up to 19 of them, and returns how many.
func number(b []byte) (v uint64, n int) {
	for n < len(b) && b[n] >= '0' && b[n] <= '9' {
		if n == 19 {
			return 0, 0
		}
		v = v*10 + uint64(b[n]-'0')
		n++
	}
	return v, n
}

// sequence is a sequencer: up to 48 hex digits, of any case, padded on the left.
type sequence [24]byte

var zeros = [48]byte(bytes.Repeat([]byte("0"), 48))

func parseSequence(b []byte) (s sequence, ok bool) {
	if len(b) == 0 || len(b) > 2*len(s) {
		return s, false
	}
	padded := zeros
	copy(padded[len(padded)-len(b):], b)
	_, err := hex.Decode(s[:], padded[:])
	return s, err == nil
}

func (c clock) String() string { return fmt.Sprintf("%d.%010d", c.wall, c.logical) }

// form is how an event came.
type form uint8

const (
	asValue form = 1 << iota
	asTombstone

	repeatedForms = iota // the shift of the bits for forms that came a second time
)

func formOf(r *Record) form {
	if r.Value == nil {
		return asTombstone
	}
	return asValue
}

// follows reports whether r is the tombstone that may come after a value.
func (f form) follows(r *Record) bool { return f == asValue && formOf(r) == asTombstone }
