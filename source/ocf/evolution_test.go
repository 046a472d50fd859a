package ocf

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// later is the schema that the samples of unreleased versions suggest: V6 with more fields and symbols.
func later(t *testing.T) string {
	text := schemaText(t, "v6")
	for _, r := range [][2]string{
		{`"symbols":["UnspecifiedEventType",`, `"symbols":["ContainerCreated","UnspecifiedEventType",`},
		{`{"name":"storageDiagnostics"`,
			`{"name":"contentOffset","type":"long"},{"name":"createTime","type":"string"},` +
				`{"name":"lastAccessTime","type":["null","string"]},{"name":"restoredContainerVersion","type":["null","string"]},{"name":"storageDiagnostics"`},
	} {
		if !strings.Contains(text, r[0]) {
			t.Fatalf("the schema has no %s", r[0])
		}
		text = strings.Replace(text, r[0], r[1], 1)
	}
	return text
}

// Events of a version that does not exist yet keep what we know where it was, and what we don't know in Extra.
func TestLaterVersion(t *testing.T) {
	b, err := os.ReadFile("testdata/EventSchemaV8.json")
	if err != nil {
		t.Fatal(err)
	}
	var v map[string]any
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatal(err)
	}
	o := newOracle(t, later(t))
	v["schemaVersion"] = int64(8)
	v["eventType"] = "ContainerCreated"
	d := v["data"].(map[string]any)
	d["contentLength"], d["contentOffset"], d["lastAccessTime"] = int64(128), int64(256), nil
	d["restoredContainerVersion"] = map[string]any{"string": d["restoredContainerVersion"]}
	for _, name := range []string{"blobVersion", "containerVersion", "snapshot"} {
		d[name] = map[string]any{"string": d[name]}
	}
	d["blobTier"] = map[string]any{"Microsoft.Storage.BlobTierEnum": d["blobTier"]}
	for _, name := range []string{"previousInfo", "blobPropertiesUpdated", "asyncOperationInfo", "blobTagsUpdated",
		"restorePointMarker"} {
		d[name] = map[string]any{"map": d[name]}
	}
	record := o.encode(t, v)
	var ev Event
	if rest, err := o.plan.Decode(string(record), &ev); err != nil || rest != "" {
		t.Fatalf("%q, %v", rest, err)
	}
	want := []Pair{{"contentOffset", "256"}, {"createTime", "2022-02-17T13:11:52.5901564Z"},
		{"restoredContainerVersion", "0000000000000002"}}
	if !slices.Equal(ev.Extra, want) {
		t.Errorf("extra is %v", ev.Extra)
	}
	ev.Extra = nil
	if got, want := sorted(ev), sorted(o.decode(t, record)); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	if ev.EventType != "ContainerCreated" || ev.BlobTier != "Archive" || len(ev.BlobPropertiesUpdated) != 6 {
		t.Errorf("%+v", ev)
	}
}

// record wraps the types of fields into a schema: those of the envelope, and those of data.
func record(envelope, data string) string {
	return `{"type":"record","name":"E","namespace":"n","fields":[` + envelope +
		`{"name":"data","type":{"type":"record","name":"D","fields":[` + data + `]}}]}`
}

// What a schema may change without changing what a field means, and what it may not.
func TestEvolution(t *testing.T) {
	double := "\x00\x00\x00\x00\x00\x00\xf8\x3f"
	tests := map[string]struct {
		schema, data string
		want         Event
	}{
		"an id in data is another field": {record(`{"name":"id","type":"string"},`, `{"name":"id","type":"string"}`),
			"\x02a\x02b",
			Event{ID: "a", Extra: []Pair{{"id", "b"}}}},
		"a url in the envelope": {record(`{"name":"url","type":"string"},`, ``), "\x02a",
			Event{Extra: []Pair{{"url", "a"}}}},
		"nullable data": {
			`{"type":"record","name":"E","fields":[{"name":"data","type":["null",{"type":"record","name":"D","fields":[{"name":"url","type":"string"}]}]}]}`,
			"\x02\x02a",
			Event{URL: "a"},
		},
		"null data": {
			`{"type":"record","name":"E","fields":[{"name":"data","type":["null",{"type":"record","name":"D","fields":[{"name":"url","type":"string"}]}]}]}`,
			"\x00",
			Event{},
		},
		"data is a string": {`{"type":"record","name":"E","fields":[{"name":"data","type":"string"}]}`, "\x02a",
			Event{Extra: []Pair{{"data", "a"}}}},
		"null at the end": {record(``,
			`{"name":"url","type":["string","null"]},{"name":"etag","type":["string","null"]}`), "\x00\x02a\x02",
			Event{URL: "a"}},
		"enum to string": {record(``, `{"name":"api","type":"string"}`), "\x02a", Event{API: "a"}},
		"string to enum": {record(``, `{"name":"url","type":{"type":"enum","name":"U","symbols":["x","y"]}}`),
			"\x02", Event{URL: "y"}},
		"long to int": {record(``, `{"name":"contentLength","type":"int"}`), "\x02",
			Event{ContentLength: 1, HasContentLength: true}},
		"null length": {record(``, `{"name":"contentLength","type":["null","long"]}`), "\x00", Event{}},
		"logical type": {record(``,
			`{"name":"contentLength","type":{"type":"long","logicalType":"timestamp-micros"}}`), "\x02",
			Event{ContentLength: 1, HasContentLength: true}},
		"string or enum": {record(``,
			`{"name":"url","type":["string",{"type":"enum","name":"U","symbols":["x","y"]}]}`), "\x02\x02",
			Event{URL: "y"}},
		"known name, other type": {record(
			``,
			`{"name":"url","type":{"type":"record","name":"U","fields":[{"name":"b","type":"string"},{"name":"a","type":"int"}]}}`,
		), "\x02x\x04", Event{Extra: []Pair{{"url", `{"a":2,"b":"x"}`}}}},
		"nullable map values": {record(``, `{"name":"previousInfo","type":{"type":"map","values":["null","string"]}}`),
			"\x04\x02a\x00\x02b\x02\x02c\x00", Event{PreviousInfo: []Pair{{"a", ""}, {"b", "c"}}}},
		"nullable change": {
			record(
				``,
				`{"name":"blobPropertiesUpdated","type":{"type":"map","values":{"type":"record","name":"V","fields":[{"name":"previous","type":["null","string"]},{"name":"current","type":"string"}]}}}`,
			),
			"\x02\x02a\x00\x02c\x00",
			Event{BlobPropertiesUpdated: []PropertyChange{{"a", "c", ""}}},
		},
		"a change with more fields": {record(
			``,
			`{"name":"blobPropertiesUpdated","type":{"type":"map","values":{"type":"record","name":"V","fields":[{"name":"current","type":"string"},{"name":"by","type":"string"}]}}}`,
		),
			"\x02\x02a\x02c\x02d\x00", Event{Extra: []Pair{{"blobPropertiesUpdated",
				`{"a":{"by":"d","current":"c"}}`}}}},
		"map with sizes": {record(``, `{"name":"previousInfo","type":{"type":"map","values":"string"}}`),
			"\x01\x08\x02a\x02b\x02\x02c\x02d\x00", Event{PreviousInfo: []Pair{{"a", "b"}, {"c", "d"}}}},
		"array of nulls": {record(``, `{"name":"x","type":{"type":"array","items":"null"}}`), "\x04\x00",
			Event{Extra: []Pair{{"x", "[null,null]"}}}},
		"null, bool, double": {record(``,
			`{"name":"x","type":"null"},{"name":"y","type":"boolean"},{"name":"z","type":"double"}`), "\x01" + double,
			Event{Extra: []Pair{{"y", "true"}, {"z", "1.5"}}}},
		"bytes and fixed": {
			record(``, `{"name":"x","type":"bytes"},{"name":"y","type":{"type":"fixed","name":"F","size":2}}`),
			"\x02abc",
			Event{Extra: []Pair{{"x", "YQ=="}, {"y", "YmM="}}},
		},
		"float": {record(``, `{"name":"x","type":"float"},{"name":"y","type":["null","float"]}`),
			"\xcd\xcc\xcc\x3d\x02\x00\x00\x80\x7f", Event{Extra: []Pair{{"x", "0.1"}, {"y", "+Inf"}}}},
		"list by reference": {record(
			``,
			`{"name":"x","type":{"type":"record","name":"L","fields":[{"name":"v","type":"int"},{"name":"next","type":["null","n.L"]}]}}`,
		), "\x02\x02\x04\x00",
			Event{Extra: []Pair{{"x", `{"next":{"next":null,"v":2},"v":1}`}}}},
		"reference to an enum": {record(``,
			`{"name":"api","type":{"type":"enum","name":"A","symbols":["p","q"]}},{"name":"x","type":"A"}`), "\x02\x00",
			Event{API: "q", Extra: []Pair{{"x", "p"}}}},
		"equal keys": {record(``, `{"name":"x","type":{"type":"map","values":"int"}}`),
			"\x04\x02a\x02\x02a\x04\x00", Event{Extra: []Pair{{"x", `{"a":2}`}}}},
		"diagnostics": {record(
			``,
			`{"name":"storageDiagnostics","type":{"type":"map","values":["null",{"type":"array","items":"double"}]}},{"name":"url","type":"string"}`,
		), "\x02\x02a\x02\x02" + double + "\x00\x00\x02u", Event{URL: "u"}},
		"not UTF-8": {record(``, `{"name":"url","type":"string"},{"name":"x","type":"string"}`),
			"\x02\xff\x02\xfe", Event{URL: "\xff", Extra: []Pair{{"x", "\xfe"}}}},
		"foreign attributes": {record(`{"name":"id","type":"string","Type":"x","size":"big","items":1},`, ``), "\x02a",
			Event{ID: "a"}},
	}
	for name, c := range tests {
		t.Run(name, func(t *testing.T) {
			plan, err := CompilePlan(c.schema)
			if err != nil {
				t.Fatal(err)
			}
			// An Event that was full before: nothing of that may be left.
			var ev Event
			full := newOracle(t, schemaText(t, "v6"))
			if _, err := full.plan.Decode(string(full.encode(t, random(rand.New(rand.NewPCG(3, 4)), full.schema))),
				&ev); err != nil {
				t.Fatal(err)
			}
			rest, err := plan.Decode(c.data, &ev)
			if err != nil || rest != "" {
				t.Fatalf("%q, %v", rest, err)
			}
			if got := sorted(ev); !reflect.DeepEqual(got, sorted(c.want)) {
				t.Errorf("got %+v", got)
			}
			for n := range c.data { // cut anywhere it is an error, never another event
				if _, err := plan.Decode(c.data[:n], &ev); err == nil {
					t.Errorf("cut at %d it is fine", n)
				}
			}
		})
	}
}
