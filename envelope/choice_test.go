package envelope

import (
	"bytes"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"blobfeed/source"
	"blobfeed/source/ocf"
)

// personal is an event with texts of persons.
func personal() ocf.Event {
	ev := made()[3] // with tags
	ev.ClientRequestID, ev.RequestID, ev.ETag = "personal-client", "personal-request", "kept-etag"
	ev.BlobTagsUpdated = []ocf.TagSet{{Name: "current",
		Tags: []ocf.Pair{{Name: "personal-tag", Value: "personal-value"}}}}
	return ev
}

// withRows returns the forms that have rows.
func withRows() []form {
	return slices.DeleteFunc(forms(), func(f form) bool { return f.o.Envelope == KeyOnly })
}

// Columns that are left out are in no record of any envelope or format, nor in a schema; the others stay. It makes no
// difference whether the list has those to keep, or those to leave out.
func TestColumns(t *testing.T) {
	gone := []string{"client_request_id", "request_id", "blob_tags_updated", "account"}
	var kept []string
	for _, c := range blobs("", Micros).columns {
		if !slices.Contains(gone, c.name) && c.name != "path" { // which is always there
			kept = append(kept, c.name)
		}
	}
	for _, f := range withRows() {
		ev, without, with := personal(), f.o, f.o
		without.Exclude, with.Columns = gone, kept
		var values [][]byte
		for _, o := range []Options{without, with} {
			var r Record
			if _, _, err := encoder(t, o).Append(nil, &r, &ev,
				source.Position{Segment: segment("2025/10/05/0600")}); err != nil {
				t.Fatal(err)
			}
			if bytes.Contains(r.Value, []byte("personal")) || bytes.Contains(r.Value, []byte("client_request_id")) {
				t.Errorf("%s: %q", f.name, r.Value)
			}
			if !bytes.Contains(r.Value, []byte("kept-etag")) {
				t.Errorf("%s: %q has no etag", f.name, r.Value)
			}
			subjects, err := Schemas(o)
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range subjects {
				for _, name := range gone {
					if strings.Contains(s.Schema, `"name":"`+name+`"`) {
						t.Errorf("%s: the schema of %s has %s", f.name, s.Name, name)
					}
				}
			}
			values = append(values, r.Value)
		}
		if !bytes.Equal(values[0], values[1]) {
			t.Errorf("%s:\n%q\n%q", f.name, values[0], values[1])
		}
	}
}

// A choice that says nothing, or that takes what every record needs, is refused.
func TestColumnProblems(t *testing.T) {
	for want, change := range map[string]func(*Options){
		"there is no column client_requestid;": func(o *Options) { o.Exclude = []string{"client_requestid", "etag"} },
		"there is no column nosuch;":           func(o *Options) { o.Columns = []string{"etag", "nosuch"} },
		"path is the key":                      func(o *Options) { o.Exclude = []string{"path"} },
		"updated is no column of the row":      func(o *Options) { o.Exclude = []string{"updated"} },
		"key is no column of the row":          func(o *Options) { o.Exclude = []string{"key"} },
		"list either the columns to keep": func(o *Options) {
			o.Columns, o.Exclude = []string{"etag"}, []string{"url"}
		},
		"extra is a map, which maps=omit": func(o *Options) {
			o.Columns, o.Maps = []string{"etag", "extra"}, MapsOmit
		},
		"columns is only usable with an envelope": func(o *Options) {
			*o = Defaults(JSON, KeyOnly)
			o.Columns = []string{"etag"}
		},
		"maps is only usable with an envelope": func(o *Options) {
			*o = Defaults(JSON, KeyOnly)
			o.Maps = MapsJSON
		},
	} {
		o := Defaults(JSON, Wrapped)
		change(&o)
		if err := o.Validate(); err == nil || strings.Count(err.Error(), "\n") > 0 ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("err = %v, want %s", err, want)
		}
	}
	o := Defaults(Avro, Bare)
	o.Columns = []string{"path", "etag"}
	if err := o.Validate(); err != nil {
		t.Error(err)
	}
}

// A map as a text holds the JSON of the map itself, in both formats; where that is null the text is null. Maps that are
// left out leave the rest as it is.
func TestMaps(t *testing.T) {
	native, texts, none := Defaults(JSON, Bare), Defaults(JSON, Bare), Defaults(JSON, Bare)
	texts.Maps, none.Maps = MapsJSON, MapsOmit
	avro := Defaults(Avro, Bare)
	avro.Topic, avro.Maps = "topic", MapsJSON
	var schema string
	avro.Register = func(s Subject) (int, error) { schema = s.Schema; return 1, nil }
	inAvro := encoder(t, avro)
	row := func(e *Encoder, ev ocf.Event) (fields map[string]json.RawMessage, value []byte) {
		var r Record
		if _, _, err := e.Append(nil, &r, &ev, source.Position{}); err != nil {
			t.Fatal(err)
		}
		if e.o.Format == JSON {
			if err := json.Unmarshal(r.Value, &fields); err != nil {
				t.Fatalf("%v in %s", err, r.Value)
			}
		}
		return fields, r.Value
	}
	seen := map[string]bool{}
	events := append(made(), ocf.Event{
		EventTime: "2025-10-05T06:07:08Z", EventType: "BlobCreated",
		Subject: "/blobServices/default/containers/c/blobs/b",
		Extra:   []ocf.Pair{{Name: "q\"\\", Value: "line\nü\u2028\x01\xff\\\""}},
	})
	for _, ev := range events {
		if !EventsState.Emits(Classify(&ev)) {
			continue
		}
		whole, _ := row(encoder(t, native), ev)
		text, _ := row(encoder(t, texts), ev)
		without, _ := row(encoder(t, none), ev)
		_, value := row(inAvro, ev)
		var record struct {
			Record struct{ Topic map[string]map[string]any }
		}
		if err := json.Unmarshal([]byte(avroJSON(t, schema, value)), &record); err != nil {
			t.Fatal(err)
		}
		for name, have := range text {
			if !isMapColumn(name) {
				if !bytes.Equal(have, whole[name]) || !bytes.Equal(have, without[name]) {
					t.Errorf("%s is %s, %s and %s", name, have, whole[name], without[name])
				}
				continue
			}
			if _, there := without[name]; there {
				t.Errorf("%s is not left out", name)
			}
			var inner *string
			if err := json.Unmarshal(have, &inner); err != nil {
				t.Fatalf("%s: %v in %s", name, err, have)
			}
			if inner == nil {
				if string(whole[name]) != "null" || record.Record.Topic[name] != nil {
					t.Errorf("%s is null, not %s", name, whole[name])
				}
				continue
			}
			seen[name] = true
			if *inner != string(whole[name]) {
				t.Errorf("%s is %s, want %s", name, *inner, whole[name])
			}
			if got := record.Record.Topic[name]["string"]; got != *inner {
				t.Errorf("%s is %v in Avro, want %s", name, got, *inner)
			}
		}
	}
	if want := []string{"blob_properties_updated", "blob_tags_updated", "extra", "previous_info"}; !slices.Equal(
		slices.Sorted(maps.Keys(seen)), want) {
		t.Errorf("only %v had entries", seen)
	}
	if regexp.MustCompile(`"map"`).MatchString(schema) {
		t.Errorf("a map is in %s", schema)
	}
}

func isMapColumn(name string) bool {
	return slices.ContainsFunc(blobs("", Micros).columns,
		func(c column) bool { return c.name == name && isMap(c.field) })
}
