package envelope

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"blobfeed/internal/plain"
)

// Format is the encoding of values.
type Format uint8

// The formats.
const (
	JSON Format = iota
	Avro        // Confluent's: a zero byte, the schema's id, the body
)

// Envelope is the form of values around the row.
type Envelope uint8

// The envelopes.
const (
	Wrapped  Envelope = iota // {"after": row, …}
	Bare                     // the row with "__crdb__" in it; for a deletion only the identity of the row
	Row                      // the row with "__crdb__" in it
	KeyOnly                  // an empty value
	Enriched                 // Debezium's: before, after, op, source
)

// EventsMode chooses the events that become records.
type EventsMode uint8

// The modes.
const (
	EventsState EventsMode = iota // those that change a row
	EventsAll                     // all but Control
)

// Emits reports whether events of a kind become records.
func (m EventsMode) Emits(k Kind) bool {
	return k == Upsert || k == Delete || k != Control && m == EventsAll
}

// KeyFormat is the form of keys.
type KeyFormat uint8

// The forms.
const (
	KeyJSONArray  KeyFormat = iota // ["container/blob"]
	KeyJSONObject                  // {"path": "container/blob"}
	KeyString                      // container/blob, as it is
	KeyAvro                        // a record with the field path
)

// HeaderMode chooses the headers of records.
type HeaderMode uint8

// The modes.
const (
	HeadersCloudEvents HeaderMode = iota
	HeadersNone
)

// Properties are the enriched_properties: parts of the enriched envelope that are written on request.
type Properties uint8

// The properties.
const (
	Source Properties = 1 << iota // where an event comes from, and its time
	Schema                        // Kafka Connect's schema, in every value
)

// Deletes is the value of a deletion.
type Deletes uint8

// The forms.
const (
	DeletesEnvelope  Deletes = iota // as the envelope has it, such as {"after": null}
	DeletesTombstone                // null
	DeletesBoth                     // two records: as the envelope has it, then null
	DeletesEmpty                    // no bytes, but not null: CockroachDB's
)

// AvroTimestamps is the Avro type of columns that hold a time.
type AvroTimestamps uint8

// The types.
const (
	Micros AvroTimestamps = iota // long, timestamp-micros
	Millis                       // long, timestamp-millis
	Text                         // string, as the feed has it
)

// Markers says where resolved markers go. With Avro, those in the records' topic share the records' schema.
type Markers uint8

// The places.
const (
	MarkersInline Markers = iota
	MarkersTopic          // the topic <topic>.resolved
	MarkersOff
)

// Maps says how columns that are maps are written.
type Maps uint8

// The forms.
const (
	MapsNative Maps = iota // an object in JSON, a map in Avro
	MapsJSON               // a string that holds JSON, for consumers that take only plain columns
	MapsOmit               // not at all
)

// Options are the settings of an Encoder. The names in errors are CockroachDB's names of the options.
type Options struct {
	Account  string // of events whose topic names none
	Topic    string // of the records; needed for Avro, topic_in_value and enriched_properties=schema
	Events   EventsMode
	Format   Format
	Envelope Envelope

	Updated       bool // the event's time and sequence
	Diff          bool // the row before, as far as the event has it
	KeyInValue    bool
	TopicInValue  bool
	MVCCTimestamp bool // when the row was written: the same as updated, but of scanned rows
	Properties    Properties
	NoBefore      bool // the enriched envelope has no field before; else it has the key, as Debezium's readers want

	Columns        []string // that rows and the source have, beside the key; none: all
	Exclude        []string // columns that rows and the source do not have
	Maps           Maps
	Deletes        Deletes
	KeyFormat      KeyFormat
	AvroTimestamps AvroTimestamps
	Markers        Markers
	Headers        HeaderMode
	ExtraHeaders   []Header // of every record but markers, first

	// Register returns the id of a schema; with Avro, NewEncoder calls it for each that Schemas returns.
	Register func(Subject) (id int, err error)
	// Now is the clock of the enriched envelope's ts_ns, in ns: when the record was made.
	Now func() int64
}

// Defaults returns the default options. They are valid except that the topic and the functions are missing.
func Defaults(f Format, e Envelope) Options {
	o := Options{Format: f, Envelope: e}
	o.Updated = e == Wrapped || e == Enriched || f == JSON && e != KeyOnly
	o.KeyInValue = e == Wrapped || e == Enriched || e == Bare
	switch e {
	case Row:
		o.Deletes = DeletesTombstone // its only other form is the empty value, which readers take for an update
	case Enriched:
		o.Properties = Source
		o.Markers = MarkersTopic // readers of Debezium's messages fail on others
	}
	if f == Avro {
		o.KeyFormat = KeyAvro
	}
	return o
}

var (
	formatNames     = []string{"json", "avro"}
	envelopeNames   = []string{"wrapped", "bare", "row", "key_only", "enriched"}
	eventsNames     = []string{"state", "all"}
	keyFormatNames  = []string{"json_array", "json_object", "string", "avro"}
	headersNames    = []string{"cloudevents", "none"}
	deletesNames    = []string{"envelope", "tombstone", "both", "empty"}
	timestampsNames = []string{"micros", "millis", "string"}
	markersNames    = []string{"inline", "topic", "off"}
	mapsNames       = []string{"native", "json", "omit"}
	propertyNames   = []string{"source", "schema"}
)

func name[T ~uint8](names []string, v T) string {
	if int(v) < len(names) {
		return names[v]
	}
	return fmt.Sprintf("unknown(%d)", v)
}

func parse[T ~uint8](names []string, text []byte, v *T) error {
	i := slices.Index(names, string(text))
	if i < 0 {
		return fmt.Errorf("invalid value %q: want one of %s", text, strings.Join(names, ", "))
	}
	*v = T(i)
	return nil
}

func (f Format) String() string         { return name(formatNames, f) }
func (e Envelope) String() string       { return name(envelopeNames, e) }
func (m EventsMode) String() string     { return name(eventsNames, m) }
func (f KeyFormat) String() string      { return name(keyFormatNames, f) }
func (m HeaderMode) String() string     { return name(headersNames, m) }
func (d Deletes) String() string        { return name(deletesNames, d) }
func (t AvroTimestamps) String() string { return name(timestampsNames, t) }
func (m Markers) String() string        { return name(markersNames, m) }
func (m Maps) String() string           { return name(mapsNames, m) }

// UnmarshalText parses what String returns; so do its namesakes.
func (f *Format) UnmarshalText(b []byte) error { return parse(formatNames, b, f) }

// UnmarshalText parses the name of an envelope.
func (e *Envelope) UnmarshalText(b []byte) error { return parse(envelopeNames, b, e) }

// UnmarshalText parses the name of a mode.
func (m *EventsMode) UnmarshalText(b []byte) error { return parse(eventsNames, b, m) }

// UnmarshalText parses the name of a form.
func (f *KeyFormat) UnmarshalText(b []byte) error { return parse(keyFormatNames, b, f) }

// UnmarshalText parses the name of a mode.
func (m *HeaderMode) UnmarshalText(b []byte) error { return parse(headersNames, b, m) }

// UnmarshalText parses the name of a form.
func (d *Deletes) UnmarshalText(b []byte) error { return parse(deletesNames, b, d) }

// UnmarshalText parses the name of a type.
func (t *AvroTimestamps) UnmarshalText(b []byte) error { return parse(timestampsNames, b, t) }

// UnmarshalText parses the name of a place.
func (m *Markers) UnmarshalText(b []byte) error { return parse(markersNames, b, m) }

// UnmarshalText parses the name of a form.
func (m *Maps) UnmarshalText(b []byte) error { return parse(mapsNames, b, m) }

// String returns the names of the properties, comma separated.
func (p Properties) String() string {
	var on []string
	for i, name := range propertyNames {
		if p&(1<<i) != 0 {
			on = append(on, name)
		}
	}
	return strings.Join(on, ",")
}

// UnmarshalText parses what String returns.
func (p *Properties) UnmarshalText(b []byte) error {
	*p = 0
	for name := range strings.SplitSeq(string(b), ",") {
		if name = strings.TrimSpace(name); name == "" {
			continue
		}
		var i uint8
		if err := parse(propertyNames, []byte(name), &i); err != nil {
			return err
		}
		*p |= 1 << i
	}
	return nil
}

// Validate returns every reason why these options are invalid, except a missing topic or function. It rejects what
// CockroachDB rejects, in CockroachDB's words, and also what CockroachDB would silently ignore.
func (o *Options) Validate() error {
	var errs []error
	refuse := func(when bool, format string, args ...any) {
		if when {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	refuse(o.Format > Avro || o.Envelope > Enriched || o.Events > EventsAll || o.KeyFormat > KeyAvro ||
		o.Headers > HeadersNone ||
		o.Properties > Source|Schema || o.Deletes > DeletesEmpty || o.AvroTimestamps > Text ||
		o.Markers > MarkersOff || o.Maps > MapsOmit,
		"options %+v are out of range", *o)

	errs = append(errs, o.validateColumns()...)
	avro, env := o.Format == Avro, o.Envelope
	if avro && env == Row {
		return errors.Join(append(errs, errors.New("envelope=row is not supported with format=avro"))...)
	}
	// A row of JSON holds metadata in "__crdb__".
	inRow := !avro && (env == Bare || env == Row)
	nested := env == Wrapped || env == Enriched
	for _, option := range []struct {
		name   string
		on, ok bool
		where  string
	}{
		{"updated", o.Updated, nested || inRow, "envelope=wrapped or envelope=enriched"},
		{"diff", o.Diff, nested, "envelope=wrapped or envelope=enriched"},
		{"mvcc_timestamp", o.MVCCTimestamp, nested || inRow, "envelope=wrapped or envelope=enriched"},
		{"key_in_value", o.KeyInValue, nested || env == Bare, "envelope=wrapped"},
		{"topic_in_value", o.TopicInValue, nested || env == Bare, "envelope=wrapped"},
		{"enriched_properties", o.Properties != 0, env == Enriched, "envelope=enriched"},
		{"!before", o.NoBefore, env == Enriched, "envelope=enriched"},
		{"avro_timestamps", o.AvroTimestamps != Micros, avro && env != KeyOnly,
			"format=avro and an envelope that holds rows"},
		{"columns", len(o.Columns)+len(o.Exclude) > 0, env != KeyOnly, "an envelope that holds rows"},
		{"maps", o.Maps != MapsNative, env != KeyOnly, "an envelope that holds rows"},
	} {
		refuse(option.on && !option.ok, "%s is only usable with %s", option.name, option.where)
	}
	if env == Enriched {
		refuse(o.Updated && o.Properties&Source == 0,
			"updated is only usable with enriched_properties=source when envelope=enriched")
		refuse(o.MVCCTimestamp && o.Properties&Source == 0,
			"mvcc_timestamp is only usable with enriched_properties=source when envelope=enriched")
		refuse(o.Properties&Schema != 0 && avro,
			"enriched_properties=schema is only usable with format=json: the registry has Avro's")
		refuse(o.Diff && o.NoBefore, "diff is not usable with !before: remove one of them")
		refuse(o.Events == EventsAll,
			"events=all is not usable with envelope=enriched: an event that changes no row has no op")
	}
	refuse(env == Row && (o.Deletes == DeletesEnvelope || o.Deletes == DeletesBoth),
		"deletes=%s is not usable with envelope=row, which has no form for deletions: use tombstone, or empty as "+
			"CockroachDB does", o.Deletes)
	for _, h := range o.ExtraHeaders {
		refuse(h.Key == "", "extra_headers: a header has no name")
		refuse(reserved(h.Key), "extra_headers: %s is a header of the bridge's own: choose another name", h.Key)
	}
	return errors.Join(errs...)
}

// validateColumns returns what is wrong with the choice of columns.
func (o *Options) validateColumns() (errs []error) {
	if len(o.Columns) > 0 && len(o.Exclude) > 0 {
		errs = append(errs, errors.New("columns: list either the columns to keep or, with !, those to leave out"))
	}
	all := blobs("", Micros).columns
	var names []string
	for _, c := range all {
		names = append(names, c.name)
	}
	for _, name := range slices.Concat(o.Columns, o.Exclude) {
		i := slices.IndexFunc(all, func(c column) bool { return c.name == name })
		switch {
		case i < 0 && slices.Contains([]string{"updated", "key", "topic", "mvcc_timestamp", "before", "after"}, name):
			errs = append(errs, fmt.Errorf("columns: %s is no column of the row but part of the envelope: "+
				"see the settings OPTIONS and ENVELOPE", name))
		case i < 0:
			advice := "docs/events.md lists them"
			if near := plain.Nearest(name, names, 2); near != "" {
				advice = "did you mean " + near + "?"
			}
			errs = append(errs, fmt.Errorf("columns: there is no column %s; %s", name, advice))
		case slices.Contains(o.Exclude, name) && name == "path":
			errs = append(errs, errors.New("columns: path is the key, which every row has: remove !path"))
		case slices.Contains(o.Columns, name) && isMap(all[i].field) && o.Maps == MapsOmit:
			errs = append(errs,
				fmt.Errorf("columns: %s is a map, which maps=omit leaves out: remove one of them", name))
		}
	}
	return errs
}

// complete reports what NewEncoder needs beyond valid options.
func (o *Options) complete() error {
	if o.Topic == "" && (o.registers() || o.TopicInValue || o.Properties&Schema != 0) {
		return errors.New("the topic is missing: Avro, topic_in_value and enriched_properties=schema need its name")
	}
	if name := AvroName(o.Topic); o.Format == Avro && o.Envelope == Enriched && (name == "source" ||
		name == envelopeName) {
		return fmt.Errorf("topic %s: another record of the Avro schema has this name; choose another topic", o.Topic)
	}
	return nil
}

// registers reports whether the records need schemas.
func (o *Options) registers() bool { return o.Format == Avro || o.KeyFormat == KeyAvro }
