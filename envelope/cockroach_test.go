package envelope

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"blobfeed/source"
	"blobfeed/source/ocf"
)

// The fixtures are CockroachDB's expectations. Its tables are written by the code that writes ours.

func fixture(t *testing.T, file string, v any) {
	t.Helper()
	b, err := os.ReadFile("testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	d := json.NewDecoder(strings.NewReader(string(b)))
	d.UseNumber()
	if err := d.Decode(v); err != nil {
		t.Fatal(err)
	}
}

func constant(name, value string) column {
	return column{name: name, field: text(func(*row) string { return value })}
}

func deleted(ev, _ *ocf.Event) bool { return Classify(ev) == Delete }

// foo is its table foo(a INT PRIMARY KEY, b STRING) with the row (1, 'bar').
func foo() table {
	a := column{name: "a", field: integer(func(*row) (int64, bool) { return 1, true })}
	return table{name: "foo", key: []column{a}, columns: []column{a, constant("b", "bar")}, before: deleted}
}

// theirs returns an encoder of a table of theirs, and an insert and a delete at {WallTime: 1, Logical: 2}.
func theirs(t *testing.T, o Options, tab table, ids map[string]int) (*Encoder, func(*ocf.Event) Record) {
	t.Helper()
	o.Topic = tab.name
	e, err := compile(o, tab)
	if err != nil {
		t.Fatal(err)
	}
	e.setIDs(ids)
	return e, func(ev *ocf.Event) Record {
		var r Record
		if _, emit, err := e.Append(nil, &r, ev, source.Position{}); err != nil || !emit {
			t.Fatal(emit, err)
		}
		return r
	}
}

func at12(eventType string) *ocf.Event {
	return &ocf.Event{EventType: eventType, Subject: subjectPrefix + "c/blobs/b",
		EventTime: "1970-01-01T00:00:00.000000001Z", Sequencer: "2"}
}

// optionsOf parses the name of a case, such as "wrapped,updated,diff".
func optionsOf(t *testing.T, f Format, name string) Options {
	t.Helper()
	env, rest, _ := strings.Cut(name, ",")
	o := Options{Format: f}
	if err := o.Envelope.UnmarshalText([]byte(env)); err != nil {
		t.Fatal(err)
	}
	for option := range strings.SplitSeq(rest, ",") {
		switch option {
		case "":
		case "updated":
			o.Updated = true
		case "diff":
			o.Diff = true
		case "mvcc_timestamp":
			o.MVCCTimestamp = true
		default:
			t.Fatalf("case %s: option %s is unknown", name, option)
		}
	}
	if o.Envelope == Row {
		o.Deletes = DeletesEmpty
	}
	if f == Avro {
		o.KeyFormat, o.Markers = KeyAvro, MarkersTopic // it has no schema for both records and markers
	}
	return o
}

func TestCockroachJSON(t *testing.T) {
	var cases struct {
		JSON   map[string]struct{ Insert, Delete, Resolved string }
		Avro   map[string]struct{ Insert, Delete, Resolved string } `json:"avro_as_json"`
		Errors map[string]string
	}
	fixture(t, "json_envelope_cases.json", &cases)
	if len(cases.JSON) != 9 || len(cases.Avro) != 4 || len(cases.Errors) != 3 {
		t.Fatalf("%d, %d, %d cases", len(cases.JSON), len(cases.Avro), len(cases.Errors))
	}
	// It ignores these options; we refuse them, in the words it has for them elsewhere.
	ignored := map[string]string{
		"key_only,updated": "updated is only usable with envelope=wrapped or envelope=enriched",
		"row,diff":         "diff is only usable with envelope=wrapped or envelope=enriched",
	}
	for name, c := range cases.JSON {
		o := optionsOf(t, JSON, name)
		if want := ignored[name]; want != "" {
			if err := o.Validate(); err == nil || err.Error() != want {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		e, encode := theirs(t, o, foo(), nil)
		for event, want := range map[string]string{"BlobCreated": c.Insert, "BlobDeleted": c.Delete} {
			r := encode(at12(event))
			if got := string(r.Key) + "->" + string(r.Value); got != want || r.Value == nil {
				t.Errorf("%s: %s, want %s", name, got, want)
			}
		}
		if got := string(e.Resolved(Timestamp{1, 2}).Value); got != c.Resolved {
			t.Errorf("%s: %s, want %s", name, got, c.Resolved)
		}
	}
	for name, c := range cases.Avro {
		e, encode := theirs(t, optionsOf(t, Avro, name), foo(), nil)
		schema := map[string]string{}
		for _, s := range e.schemas() {
			schema[s.Name] = s.Schema
		}
		for event, want := range map[string]string{"BlobCreated": c.Insert, "BlobDeleted": c.Delete} {
			key, value, _ := strings.Cut(want, "->")
			r := encode(at12(event))
			sameJSON(t, name, avroJSON(t, schema["foo-key"], r.Key), key)
			if len(r.Value) > 0 || value != "" {
				sameJSON(t, name, avroJSON(t, schema["foo-value"], r.Value), value)
			}
		}
		if c.Resolved != "" {
			sameJSON(t, name, avroJSON(t, schema["foo.resolved-value"], e.Resolved(Timestamp{1, 2}).Value), c.Resolved)
		}
	}
	for name, want := range cases.Errors {
		o := optionsOf(t, Avro, strings.TrimPrefix(name, "avro,"))
		if err := o.Validate(); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
}

func sameJSON(t *testing.T, name, got, want string) {
	t.Helper()
	var g, w any
	if err := json.Unmarshal([]byte(got), &g); err != nil {
		t.Fatalf("%s: %s: %v", name, got, err)
	}
	if err := json.Unmarshal([]byte(want), &w); err != nil {
		t.Fatalf("%s: %s: %v", name, want, err)
	}
	if !reflect.DeepEqual(g, w) {
		t.Errorf("%s: %s, want %s", name, got, want)
	}
}

func TestCockroachAvro(t *testing.T) {
	var examples struct {
		Examples []struct {
			Name, Subject string
			ID            int    `json:"schema_id_used"`
			Schema        string `json:"schema_as_registered"`
			Wire          string `json:"wire_hex"`
		}
	}
	fixture(t, "avro_worked_examples.json", &examples)
	if len(examples.Examples) != 9 {
		t.Fatalf("%d examples", len(examples.Examples))
	}
	columnType := regexp.MustCompile(`,"__crdb__":"[^"]*"`) // of the SQL column: ours have none
	for _, x := range examples.Examples {
		if strings.Contains(x.Name, "avro_schema_prefix") {
			continue // subjects are named after topics here, and topics can have a prefix
		}
		options, eventType := "wrapped", "BlobCreated"
		if kind, rest, ok := strings.Cut(x.Name, " "); ok && kind == "value" {
			var event string
			options, event, _ = strings.Cut(rest, " ")
			if event == "delete" {
				eventType = "BlobDeleted"
			}
		}
		subject := x.Subject
		if x.Name == "resolved" {
			subject = "foo.resolved-value" // of a topic of their own
		}
		e, encode := theirs(t, optionsOf(t, Avro, options), foo(), map[string]int{subject: x.ID})
		r := encode(at12(eventType))
		got := r.Value
		switch x.Name {
		case "key":
			got = r.Key
		case "resolved":
			got = e.Resolved(Timestamp{1, 2}).Value
		}
		if fmt.Sprintf("%x", got) != x.Wire {
			t.Errorf("%s: %x, want %s", x.Name, got, x.Wire)
		}
		schemas := e.schemas()
		i := slices.IndexFunc(schemas, func(s Subject) bool { return s.Name == subject })
		if want := columnType.ReplaceAllString(x.Schema, ""); i < 0 || schemas[i].Schema != want {
			t.Errorf("%s: %v, want %s", x.Name, schemas, want)
		}
	}
}

// decimal is a number as it is written.
type decimal struct{ text }

func (f decimal) json(b []byte, r *row) []byte { return append(b, f.text(r)...) }

func TestCockroachNames(t *testing.T) {
	var cases []struct{ In, Kafka, Avro string }
	fixture(t, "name_escaping.json", &cases)
	if len(cases) < 15 {
		t.Fatalf("%d cases", len(cases))
	}
	for _, c := range cases {
		if got := KafkaName(c.In); got != c.Kafka {
			t.Errorf("KafkaName(%s) = %s, want %s", c.In, got, c.Kafka)
		}
		if got := AvroName(c.In); got != c.Avro {
			t.Errorf("AvroName(%s) = %s, want %s", c.In, got, c.Avro)
		}
	}
}
