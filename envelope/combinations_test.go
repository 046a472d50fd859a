package envelope

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"blobfeed/source"
	"blobfeed/source/ocf"
)

type axis struct {
	name   string // as an error begins that refuses it
	values int
	set    func(*Options, int)
}

// settable are the options that a combination is made of: how many values each has, and how to set one.
var settable = []axis{
	{"updated", 2, func(o *Options, v int) { o.Updated = v == 1 }},
	{"diff", 2, func(o *Options, v int) { o.Diff = v == 1 }},
	{"key_in_value", 2, func(o *Options, v int) { o.KeyInValue = v == 1 }},
	{"topic_in_value", 2, func(o *Options, v int) { o.TopicInValue = v == 1 }},
	{"mvcc_timestamp", 2, func(o *Options, v int) { o.MVCCTimestamp = v == 1 }},
	{"enriched_properties", 4, func(o *Options, v int) { o.Properties = Properties(v) }},
	{"!before", 2, func(o *Options, v int) { o.NoBefore = v == 1 }},
	{"deletes", 4, func(o *Options, v int) { o.Deletes = Deletes(v) }},
	{"events", 2, func(o *Options, v int) { o.Events = EventsMode(v) }},
	{"avro_timestamps", 3, func(o *Options, v int) { o.AvroTimestamps = AvroTimestamps(v) }},
	{"maps", 3, func(o *Options, v int) { o.Maps = Maps(v) }},
	{"columns", 2, func(o *Options, v int) { o.Exclude = []string{"etag"}[:v] }},
}

// written is all that an encoder makes of some events.
func written(t *testing.T, o Options, events []ocf.Event) string {
	t.Helper()
	var b strings.Builder
	schemas := map[string]string{}
	o.Register = func(s Subject) (int, error) {
		schemas[s.Name] = s.Schema
		fmt.Fprintln(&b, s)
		return len(s.Name), nil
	}
	o.Now = func() int64 { return 5e9 }
	e, err := NewEncoder(o)
	if err != nil {
		t.Fatalf("%+v is valid, but %v", o, err)
	}
	check := func(value []byte) {
		switch {
		case len(value) == 0:
		case o.Format == Avro:
			avroJSON(t, schemas["topic-value"], value)
		case !json.Valid(value):
			t.Fatalf("%+v: %s", o, value)
		}
	}
	var r Record
	for i := range events {
		_, emit, err := e.Append(nil, &r, &events[i], source.Position{})
		if err != nil {
			t.Fatal(err)
		}
		if emit {
			check(r.Value)
			fmt.Fprintf(&b, "%s %q %v %v\n", r.Key, r.Value, r.Value == nil, r.Tombstone)
		}
	}
	for _, row := range scanned(t, e) {
		check(row.Value)
		fmt.Fprintf(&b, "%s %q %v %v\n", row.Key, row.Value, row.Value == nil, row.Tombstone)
	}
	m := e.Resolved(Timestamp{1, 2})
	check(m.Value)
	fmt.Fprintf(&b, "%q\n", m.Value)
	return b.String()
}

// Every combination of every option is refused for a reason that goes away with the option it names, or is encoded;
// then each option that is on makes a difference: nothing is silently ignored. A short run takes up to four options at
// once.
func TestCombinations(t *testing.T) {
	events := made()[:5]
	valid, refused := 0, 0
	outputs := map[string]string{}
	output := func(o Options) string {
		key := fmt.Sprintf("%+v", o)
		if outputs[key] == "" {
			outputs[key] = written(t, o, events)
		}
		return outputs[key]
	}
	choice := make([]int, len(settable))
	build := func(f Format, env Envelope) Options {
		o := Options{Format: f, Envelope: env, Topic: "topic"}
		for i, s := range settable {
			s.set(&o, choice[i])
		}
		return o
	}
	counted := 0
	check := func(f Format, env Envelope) {
		counted++
		if on := slices.DeleteFunc(slices.Clone(choice), func(v int) bool { return v == 0 }); testing.Short() &&
			len(on) > 4 {
			return
		}
		o := build(f, env)
		err := o.Validate()
		if err != nil {
			refused++
			if on := slices.DeleteFunc(slices.Clone(choice), func(v int) bool { return v == 0 }); len(on) > 3 {
				return // what refuses an option is at most one other, besides format and envelope
			}
			for reason := range strings.SplitSeq(err.Error(), "\n") {
				name := strings.FieldsFunc(reason, func(r rune) bool { return r == '=' || r == ' ' })[0]
				if name == "envelope" {
					continue // row is not supported with Avro
				}
				with := o
				i := slices.IndexFunc(settable, func(a axis) bool { return a.name == name })
				if name == "deletes" {
					with.Deletes = DeletesTombstone
				} else {
					settable[i].set(&with, 0)
				}
				if err := with.Validate(); err != nil && strings.Contains(err.Error(), reason) {
					t.Fatalf("%+v is refused for %q, and also without that", o, reason)
				}
			}
			return
		}
		valid++
		for i, s := range settable {
			if choice[i] == 0 {
				continue
			}
			without := o
			s.set(&without, 0)
			switch {
			case s.name == "deletes" && env == KeyOnly && o.Deletes == DeletesEmpty, // is empty without being told
				without.Validate() != nil:
				continue
			}
			if output(o) == output(without) {
				t.Fatalf("%+v: %s is ignored", o, s.name)
			}
		}
		output(o)
	}
	for f := range Avro + 1 {
		for env := range Enriched + 1 {
			var each func(i int)
			each = func(i int) {
				if i == len(settable) {
					check(f, env)
					return
				}
				for choice[i] = range settable[i].values {
					each(i + 1)
				}
				choice[i] = 0
			}
			each(0)
		}
	}
	t.Logf("%d valid, %d refused, %d encoded", valid, refused, len(outputs))
	if want := 2 * 5 * 32 * 4 * 2 * 4 * 2 * 3 * 3 * 2; counted != want {
		t.Errorf("%d combinations, want %d", counted, want)
	}
}

// What is on by default is valid, and so is the plainest.
func TestDefaults(t *testing.T) {
	for f := range Avro + 1 {
		for env := range Enriched + 1 {
			for _, o := range []Options{Defaults(f, env), plainest(f, env)} {
				if err := o.Validate(); (err != nil) != (f == Avro && env == Row) {
					t.Errorf("%s %s: %v", f, env, err)
				}
			}
		}
	}
	if o := Defaults(JSON, Wrapped); !o.Updated || !o.KeyInValue || o.Diff || o.TopicInValue || o.MVCCTimestamp {
		t.Errorf("%+v", o)
	}
}

func TestIncomplete(t *testing.T) {
	register := func(Subject) (int, error) { return 1, nil }
	for want, o := range map[string]Options{
		"the topic is missing":       {Format: Avro, Register: register},
		"need a schema registry":     {Format: Avro, Topic: "t"},
		"another record of the Avro": {Format: Avro, Topic: "source", Envelope: Enriched, Register: register},
		"out of range":               {Deletes: 9},
		"updated is a header":        {ExtraHeaders: []Header{{Key: "updated"}}},
		"resolved is a header":       {ExtraHeaders: []Header{{Key: "resolved"}}},
		"ce_time is a header":        {ExtraHeaders: []Header{{Key: "ce_time"}}, Headers: HeadersNone},
		"content-type is a header":   {ExtraHeaders: []Header{{Key: "content-type"}}},
		"ce_dataschema is a header":  {ExtraHeaders: []Header{{Key: "ce_dataschema"}}},
		"feed is a header":           {ExtraHeaders: []Header{{Key: "feed"}}},
		"epoch is a header":          {ExtraHeaders: []Header{{Key: "epoch"}}},
		"scan is a header":           {ExtraHeaders: []Header{{Key: "scan"}}},
		"has no name":                {ExtraHeaders: []Header{{}}},
		"getting the id of the schema of t-value: down": {Format: Avro, Topic: "t", Register: func(Subject) (int, error) {
			return 0, fmt.Errorf("down")
		}},
		"id 4294967296": {Format: Avro, Topic: "t", Register: func(Subject) (int, error) { return 1 << 32, nil }},
	} {
		if _, err := NewEncoder(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// The text of every option is parsed back, and what is no option is refused.
func TestOptionTexts(t *testing.T) {
	var o Options
	var p Properties
	for _, c := range []struct {
		value interface{ String() string }
		parse func([]byte) error
		text  string
	}{
		{Avro, o.Format.UnmarshalText, "avro"}, {KeyOnly, o.Envelope.UnmarshalText, "key_only"},
		{EventsAll, o.Events.UnmarshalText, "all"},
		{KeyString, o.KeyFormat.UnmarshalText, "string"}, {HeadersNone, o.Headers.UnmarshalText, "none"},
		{DeletesBoth, o.Deletes.UnmarshalText, "both"}, {Text, o.AvroTimestamps.UnmarshalText, "string"},
		{MarkersOff, o.Markers.UnmarshalText, "off"},
		{Source | Schema, p.UnmarshalText, "source,schema"}, {MapsOmit, o.Maps.UnmarshalText, "omit"},
	} {
		if err := c.parse([]byte(c.text)); err != nil || c.value.String() != c.text {
			t.Errorf("%s: %s, %v", c.text, c.value, err)
		}
		if err := c.parse([]byte("nonsense")); err == nil {
			t.Errorf("nonsense is taken for one of %s's kind", c.text)
		}
	}
	want := Options{Format: Avro, Envelope: KeyOnly, Events: EventsAll, KeyFormat: KeyString, Headers: HeadersNone,
		Deletes: DeletesBoth, Maps: MapsOmit,
		AvroTimestamps: Text, Markers: MarkersOff}
	if fmt.Sprintf("%+v", o) != fmt.Sprintf("%+v", want) {
		t.Errorf("%+v", o)
	}
	if s := Format(7).String(); s != "unknown(7)" {
		t.Error(s)
	}
}

// The form of the key is independent of all else.
func TestKeyFormats(t *testing.T) {
	for f := range Avro + 1 {
		for env := range Enriched + 1 {
			seen := map[string]bool{}
			for k := range KeyAvro + 1 {
				o := plainest(f, env)
				o.KeyFormat = k
				if o.Validate() == nil {
					seen[written(t, o, made()[:1])] = true
				}
			}
			if n := len(seen); n != int(KeyAvro)+1 && (f != Avro || env != Row) {
				t.Errorf("%s %s: %d forms of keys", f, env, n)
			}
		}
	}
}
