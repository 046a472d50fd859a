package envelope

import (
	"errors"
	"fmt"
	"slices"
)

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
	for _, name := range slices.Concat(o.Columns, o.Exclude) {
		i := slices.IndexFunc(all, func(c column) bool { return c.name == name })
		switch {
		case i < 0 && slices.Contains([]string{"updated", "key", "topic", "mvcc_timestamp", "before", "after"}, name):
			errs = append(errs, fmt.Errorf("columns: %s is no column of the row but part of the envelope: "+
				"see the settings OPTIONS and ENVELOPE", name))
		case i < 0:
			errs = append(errs, fmt.Errorf("columns: there is no column %s; docs/events.md lists them", name))
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
