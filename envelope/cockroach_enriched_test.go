package envelope

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"blobfeed/source/ocf"
)

func TestCockroachEnriched(t *testing.T) {
	var x struct {
		Payload struct {
			After  map[string]any
			Source map[string]any
			TSNs   json.Number `json:"ts_ns"`
		}
		Shape struct {
			Type     string
			Optional bool
			Fields   []struct{ Field, Type string }
		} `json:"schema_shape"`
	}
	var whole struct{ Payload any }
	fixture(t, "enriched_full_fidelity_example.json", &x)
	fixture(t, "enriched_full_fidelity_example.json", &whole)
	id := constant("id", x.Payload.After["id"].(string))
	products := table{name: "products", key: []column{id}, before: func(_, _ *ocf.Event) bool { return true },
		columns: []column{
			id, constant("name", x.Payload.After["name"].(string)),
			{name: "price", field: decimal{text(func(*row) string { return "12.50" })}},
		}}
	for name, v := range x.Payload.Source {
		switch v := v.(type) {
		case string:
			if name != "ts_hlc" && name != "mvcc_timestamp" {
				products.source = append(products.source, column{name: name, field: quoted(v)})
			}
		case []any:
			products.source = append(products.source, column{name: name, field: list{v[0].(string)}})
		}
	}
	o := Options{Envelope: Enriched, Properties: Source | Schema, Diff: true, MVCCTimestamp: true, Updated: true,
		KeyInValue: true}
	o.Now = func() int64 { n, _ := x.Payload.TSNs.Int64(); return n }
	_, encode := theirs(t, o, products, nil)
	ev := at12("BlobPropertiesUpdated")
	ev.EventTime, ev.Sequencer = "2025-05-14T17:23:14.200039Z", ""
	value := string(encode(ev).Value)

	var got struct {
		Payload any
		Schema  struct {
			Type, Name string
			Optional   bool
			Fields     []struct{ Field, Type string }
		}
	}
	d := json.NewDecoder(strings.NewReader(value))
	d.UseNumber()
	if err := d.Decode(&got); err != nil {
		t.Fatal(err)
	}
	payload := string(theirStyle(nil, got.Payload))
	if !strings.HasPrefix(value, `{"payload": `+payload+`, "schema": {"fields": [`) {
		t.Errorf("the bytes are not in their style: %s", value)
	}
	// We add milliseconds, which Flink asks for.
	ours := regexp.MustCompile(`"ts_ms": \d+, `)
	if n := len(ours.FindAllString(payload, -1)); n != 2 {
		t.Errorf("%d times ts_ms: %s", n, payload)
	}
	if got, want := ours.ReplaceAllString(payload, ""), string(theirStyle(nil, whole.Payload)); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	for _, f := range x.Shape.Fields {
		if !slices.Contains(got.Schema.Fields, f) {
			t.Errorf("the schema has no field %v: %v", f, got.Schema.Fields)
		}
	}
	if got.Schema.Type != x.Shape.Type || got.Schema.Optional != x.Shape.Optional ||
		!strings.HasSuffix(got.Schema.Name, ".Envelope") {
		t.Errorf("%+v", got.Schema)
	}
}

// quoted is a text that may be empty.
func quoted(s string) field {
	return ascii(func(*row) []byte { return []byte(s) })
}

// theirStyle renders JSON as CockroachDB renders rows.
func theirStyle(b []byte, v any) []byte {
	switch v := v.(type) {
	case map[string]any:
		names := make([]string, 0, len(v))
		for name := range v {
			names = append(names, name)
		}
		slices.Sort(names)
		b = append(b, '{')
		for i, name := range names {
			if i > 0 {
				b = append(b, ", "...)
			}
			b = theirStyle(append(appendString(b, name), ": "...), v[name])
		}
		return append(b, '}')
	case []any:
		b = append(b, '[')
		for i, e := range v {
			if i > 0 {
				b = append(b, ", "...)
			}
			b = theirStyle(b, e)
		}
		return append(b, ']')
	case string:
		return appendString(b, v)
	}
	text, _ := json.Marshal(v)
	return append(b, text...)
}
