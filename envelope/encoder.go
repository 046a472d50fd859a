package envelope

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"blobfeed/source"
	"blobfeed/source/ocf"
)

// Header is a record header.
type Header struct {
	Key   string
	Value []byte
}

// Record is a Kafka record but for its topic and partition. Its bytes belong to the buffer it was appended to.
type Record struct {
	Key, Value []byte // a nil value is a tombstone, an empty one is not
	Headers    []Header
	Millis     int64 // record timestamp: the event's time; of a scan, when the service answered
	Updated    Timestamp
	Kind       Kind

	// Tombstone asks for a second record right after this one: with the same key, headers and time, and a nil value.
	Tombstone bool

	// The encoder keeps its buffers here; local ones would be allocated for each event.
	row, before row
	prev        ocf.Event
	hlc, mvcc   [32]byte
	position    []byte
	source      []byte // never changed: records share it, as the events of an account do
}

// Forget drops what the encoder keeps in r of the last event, whose strings would hold all that was read with it.
func (r *Record) Forget() { r.row, r.before, r.prev = row{}, row{}, ocf.Event{} }

// Encoder writes the records of one topic.
type Encoder struct {
	o     Options
	table table

	key     *record
	keyHead []byte // what precedes the key

	value      *record // nil: empty
	head, tail []byte  // what is around the value
	tells      bool    // the value depends on whether there was a row before
	full       bool    // and on what was in it

	markerHead []byte // what precedes a marker in Avro

	constant, typed []Header // the first headers of events: without, and with the type of a value
}

// NewEncoder returns an encoder. With Avro it registers its schemas, which is why an encoder is made when a topic is
// first written to.
func NewEncoder(o Options) (*Encoder, error) {
	e, err := compile(o, blobs(o.Topic, o.AvroTimestamps))
	if err != nil {
		return nil, err
	}
	ids := map[string]int{}
	for _, s := range e.schemas() {
		if o.Register == nil {
			return nil, errors.New("format=avro and key_format=avro need a schema registry")
		}
		id, err := o.Register(s)
		if err != nil {
			return nil, fmt.Errorf("getting the id of the schema of %s: %w", s.Name, err)
		}
		if id < 0 || id > math.MaxInt32 {
			return nil, fmt.Errorf("getting the id of the schema of %s: the id %d is not a positive number of 32 bits",
				s.Name, id)
		}
		ids[s.Name] = id
	}
	e.setIDs(ids)
	return e, nil
}

func compile(o Options, t table) (*Encoder, error) {
	if err := errors.Join(o.Validate(), o.complete()); err != nil {
		return nil, err
	}
	if o.Now == nil {
		o.Now = func() int64 { return time.Now().UnixNano() }
	}
	o.choose(&t)
	e := &Encoder{o: o, table: t}
	e.key = newRecord(t.name, t.key, same)
	e.value = e.o.message(&e.table)
	e.full = o.Diff
	e.tells = e.full || o.Envelope == Enriched
	e.constant, e.typed = o.constantHeaders()
	if o.Properties&Schema != 0 {
		e.head = []byte(`{"payload": `)
		e.tail = []byte(`, "schema": {` + e.value.connect(false) + `}}`)
	}
	return e, nil
}

// Append appends the record of ev to buf and points r at it; r.Headers is reused. Emit is false for an event that the
// settings leave out. An error names the event, and leaves the record undefined. See Record.Tombstone for events that
// make two records.
func (e *Encoder) Append(buf []byte, r *Record, ev *ocf.Event, pos source.Position) (out []byte, emit bool, err error) {
	r.Kind = Classify(ev)
	if !e.o.Events.Emits(r.Kind) {
		return buf, false, nil
	}
	container, blob, err := named(ev)
	if err != nil {
		return buf, false, eventError(ev, err)
	}
	wall, err := parseTime(ev.EventTime)
	if err != nil {
		return buf, false, eventError(ev, err)
	}
	r.Updated = Timestamp{Wall: wall, Logical: logical(ev.Sequencer)}
	r.Millis = wall / int64(time.Millisecond)
	hlc := r.Updated.AppendText(r.hlc[:0])
	r.position, _ = pos.AppendText(r.position[:0])
	r.row = row{
		ev: ev, container: container, blob: blob, kind: r.Kind, updated: r.Updated,
		hlc: hlc, mvcc: hlc, position: r.position,
	}
	return e.appendRecord(buf, r), true, nil
}

// appendRecord appends the record of r.row, and fills in the rest of r.
func (e *Encoder) appendRecord(buf []byte, r *Record) []byte {
	if r.row.account = account(r.row.ev.Topic); r.row.account == "" {
		r.row.account = e.o.Account
	}
	if e.tells {
		e.tell(r)
	}

	from := len(buf)
	buf = e.appendKey(buf, &r.row)
	r.Key = buf[from:]
	value := len(buf)
	buf = e.appendValue(buf, &r.row)
	headers := len(buf)
	buf = e.appendHeaders(buf, r, headers > value)

	// The buffer may have moved while the record was appended, so slices are taken at the end.
	r.Key = buf[from:value:value]
	r.Value = buf[value:headers:headers]
	r.Tombstone = false
	if r.Kind == Delete {
		switch e.o.Deletes {
		case DeletesTombstone:
			r.Value = nil
		case DeletesBoth:
			r.Tombstone = true
		}
	}
	return buf
}

// named returns the container and the blob that an event is about.
func named(ev *ocf.Event) (container, blob string, err error) {
	container, blob, ok := subject(ev.Subject)
	switch {
	case !ok:
		return "", "", fmt.Errorf("subject %.200q does not name a blob", ev.Subject)
	case len(ev.Subject) > maxSubject:
		return "", "", fmt.Errorf("its subject has %d bytes; names of blobs have at most 1,024 characters",
			len(ev.Subject))
	}
	return container, blob, nil
}

// maxSubject bounds a text that a record holds up to six times, escaped. Names of blobs have at most 1,024 characters.
const maxSubject = 8 << 10

// eventError names the event. Its texts may be as long as their block, so they are clipped.
func eventError(ev *ocf.Event, err error) error {
	return fmt.Errorf("event %.100s of type %.100s: %w", ev.ID, ev.EventType, err)
}

// tell fills in what the event says about the row before, and the time.
func (e *Encoder) tell(r *Record) {
	if e.o.Envelope == Enriched {
		r.row.now = e.o.Now()
	}
	if !e.full {
		r.row.told = e.table.before(r.row.ev, nil)
		r.row.before = &r.row // of which the key is the same
		return
	}
	r.row.told = e.table.before(r.row.ev, &r.prev)
	r.before = r.row
	r.before.ev = &r.prev
	r.row.before = &r.before
}

func (e *Encoder) appendKey(b []byte, r *row) []byte {
	switch e.o.KeyFormat {
	case KeyAvro:
		return e.key.body(append(b, e.keyHead...), r)
	case KeyJSONObject:
		return e.key.json(b, r)
	case KeyString:
		b = append(b, r.container...)
		if r.blob != "" {
			b = append(append(b, '/'), r.blob...)
		}
		return b
	}
	return keyArray{e.key}.json(b, r)
}

func (e *Encoder) appendValue(b []byte, r *row) []byte {
	if r.kind == Delete && (e.o.Deletes == DeletesTombstone || e.o.Deletes == DeletesEmpty) || e.o.Envelope == KeyOnly {
		return b
	}
	b = append(b, e.head...)
	if e.o.Format == Avro {
		return e.value.body(b, r)
	}
	return append(e.value.json(b, r), e.tail...)
}

const (
	typePrefix  = "Microsoft.Storage."
	updatedName = "updated"

	contentTypeName = "content-type"
)

var specVersion = []byte("1.0")

// cloudEventNames are the headers of every record, in their order.
var cloudEventNames = [...]string{"ce_specversion", "ce_id", "ce_source", "ce_type", "ce_subject", "ce_time",
	updatedName, "sequence", "position"}

// contentTypes are CloudEvents' datacontenttype of values, by format. In binary mode that header has no prefix. A value
// without bytes has no type.
var contentTypes = [...]Header{
	JSON: {contentTypeName, []byte("application/json")}, Avro: {contentTypeName, []byte("application/avro")},
}

// ScanHeader is the header of rows from a scan, whatever the mode: nothing else tells them from changes.
const ScanHeader = "scan"

// markerNames are the headers of markers. Consumers recognize markers by them, and read what a marker promises.
var markerNames = [...]string{"resolved", "seek", "gap", "feed"}

// reserved reports whether a header belongs to the bridge, which writes it now, or may write it in a later version.
func reserved(name string) bool {
	return strings.HasPrefix(name, "ce_") || name == contentTypeName || name == "epoch" || name == ScanHeader ||
		slices.Contains(cloudEventNames[:], name) || slices.Contains(markerNames[:], name)
}

// constantHeaders returns the headers that are the same for all events, and those of events whose record has a value.
func (o *Options) constantHeaders() (all, typed []Header) {
	if o.Headers == HeadersNone {
		return o.ExtraHeaders, o.ExtraHeaders
	}
	all = append(slices.Clip(o.ExtraHeaders), Header{cloudEventNames[0], specVersion})
	return all, append(slices.Clip(all), contentTypes[o.Format])
}

// appendHeaders appends the values of the headers to b, and lists them in r.
func (e *Encoder) appendHeaders(b []byte, r *Record, hasValue bool) []byte {
	if r.row.scan != nil {
		r.Headers = append(r.Headers[:0], e.o.ExtraHeaders...)
		return e.appendScanHeaders(b, r)
	}
	if hasValue {
		r.Headers = append(r.Headers[:0], e.typed...)
	} else {
		r.Headers = append(r.Headers[:0], e.constant...)
	}
	if e.o.Headers == HeadersNone {
		return b
	}
	ev := r.row.ev
	var ends [len(cloudEventNames)]int // the first is a constant
	ends[0] = len(b)
	b = append(b, ev.ID...)
	ends[1], ends[2] = len(b), len(b)
	if r.source == nil || string(r.source) != ev.Topic {
		r.source = []byte(ev.Topic)
	}
	b = append(append(b, typePrefix...), ev.EventType...)
	ends[3] = len(b)
	b = append(b, ev.Subject...)
	ends[4] = len(b)
	b = append(b, ev.EventTime...)
	ends[5] = len(b)
	b = append(b, r.row.hlc...)
	ends[6] = len(b)
	b = append(b, ev.Sequencer...)
	ends[7] = len(b)
	b = append(b, r.row.position...)
	ends[8] = len(b)

	first := len(r.Headers)
	for i, name := range cloudEventNames[1:] {
		r.Headers = append(r.Headers, Header{name, b[ends[i]:ends[i+1]:ends[i+1]]})
	}
	r.Headers[first+1].Value = r.source
	return b
}

// Scan is what the rows of a listing have in place of an event's time and place.
type Scan struct {
	ID      string    // of the scan: the header of its rows
	Updated Timestamp // of the rows: up to where the feed is resolved, or when the page was listed
	Served  time.Time // when the service answered, by its own clock
}

// AppendRow is Append for a blob that a listing shows, and makes an upsert of it, whatever the options say of events.
// The caller fills ev with what the listing says; its EventTime is when the blob was last modified, which becomes
// mvcc_timestamp. The record's timestamp is s.Served: by the blob's own time, a topic's retention could delete the
// record at once.
func (e *Encoder) AppendRow(buf []byte, r *Record, ev *ocf.Event, s *Scan) ([]byte, error) {
	wall, err := parseTime(ev.EventTime)
	if err != nil {
		return buf, rowError(ev, fmt.Errorf("last modified: %w", err))
	}
	return e.appendScanned(buf, r, ev, s, Upsert, Timestamp{Wall: wall})
}

// AppendGone is Append for a key that a scan found to have no blob anymore, and makes a deletion of it. The key is all
// that it reads from ev.
func (e *Encoder) AppendGone(buf []byte, r *Record, ev *ocf.Event, s *Scan) ([]byte, error) {
	return e.appendScanned(buf, r, ev, s, Delete, s.Updated)
}

func (e *Encoder) appendScanned(
	buf []byte, r *Record, ev *ocf.Event, s *Scan, kind Kind, written Timestamp,
) ([]byte, error) {
	container, blob, err := named(ev)
	switch {
	case err != nil:
		return buf, rowError(ev, err)
	case blob == "":
		return buf, rowError(ev, fmt.Errorf("subject %.200q names a container, not a blob", ev.Subject))
	}
	r.Kind, r.Updated, r.Millis = kind, s.Updated, s.Served.UnixMilli()
	r.row = row{
		ev: ev, container: container, blob: blob, kind: kind, updated: s.Updated, scan: s,
		hlc: s.Updated.AppendText(r.hlc[:0]), mvcc: written.AppendText(r.mvcc[:0]),
	}
	return e.appendRecord(buf, r), nil
}

// appendScanHeaders appends those of a row: it is no event, so it has neither those of CloudEvents nor a place.
func (e *Encoder) appendScanHeaders(b []byte, r *Record) []byte {
	from := len(b)
	b = append(b, r.row.scan.ID...)
	id := len(b)
	if e.o.Headers == HeadersCloudEvents {
		b = append(b, r.row.hlc...)
		r.Headers = append(r.Headers, Header{updatedName, b[id:len(b):len(b)]})
	}
	r.Headers = append(r.Headers, Header{ScanHeader, b[from:id:id]})
	return b
}

// rowError names the row. Its name may be as long as a name can be, so it is clipped.
func rowError(ev *ocf.Event, err error) error {
	return fmt.Errorf("row of %.200q: %w", ev.Subject, err)
}
