package verify_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"blobfeed/envelope"
	"blobfeed/source"
	"blobfeed/source/ocf"
	"blobfeed/verify"
)

// schemas is a registry in memory.
type schemas map[int]string

func (s schemas) register(x envelope.Subject) (int, error) {
	s[len(s)+1] = x.Schema
	return len(s), nil
}

func (s schemas) find(id int) (string, error) { return s[id], nil }

// What the encoder writes in Avro reads as its JSON, null members left out.
func TestAvro(t *testing.T) {
	ev := &ocf.Event{
		ID: "4b5d4d6f-0000-4000-8000-000000000001", EventType: "BlobPropertiesUpdated",
		EventTime: "2026-01-01T00:00:01.5000000Z", Sequencer: "0A",
		Subject: "/blobServices/default/containers/c/blobs/a \"b\"", ContentLength: 7, HasContentLength: true,
		BlobTagsUpdated: []ocf.TagSet{{Name: "previous"},
			{Name: "current", Tags: []ocf.Pair{{Name: "k", Value: "v"}}}},
		BlobPropertiesUpdated: []ocf.PropertyChange{{Name: "ContentType", Current: "a/b", Previous: "c/d"}},
	}
	for _, env := range []envelope.Envelope{envelope.Wrapped, envelope.Bare, envelope.Enriched} {
		t.Run(env.String(), func(t *testing.T) {
			known := schemas{}
			o := envelope.Defaults(envelope.Avro, env)
			o.Topic, o.Register = "t", known.register
			e, err := envelope.NewEncoder(o)
			if err != nil {
				t.Fatal(err)
			}
			var r envelope.Record
			if _, emit, err := e.Append(nil, &r, ev, source.Position{}); err != nil || !emit {
				t.Fatal(err)
			}
			a := verify.NewAvro(known.find)
			text := string(a.JSON(r.Value))
			for _, want := range []string{
				`"event_id":"4b5d4d6f-0000-4000-8000-000000000001"`, `"content_length":7`,
				`"event_time":1767225601500000`, `"blob":"a \"b\""`,
				`"blob_tags_updated":{"current":{"k":"v"},"previous":{}}`,
				`{"ContentType":{"current":"a/b","previous":"c/d"}}`,
			} {
				if !strings.Contains(text, want) {
					t.Errorf("%s is not in %s", want, text)
				}
			}
			for _, b := range [][]byte{
				append(r.Value[:len(r.Value):len(r.Value)], 0), r.Value[:len(r.Value)-1], r.Value[:5],
				{0, 0, 0, 0, 99, 2}, nil,
			} {
				if text := a.JSON(b); text != nil {
					t.Errorf("%x is read as %s", b, text)
				}
			}
			if a.Err() != nil {
				t.Error(a.Err())
			}
		})
	}
}

// A registry that can't be asked, or a schema that is none, is an error; an id that it does not know is not.
func TestAvroSchemas(t *testing.T) {
	value := binary.BigEndian.AppendUint32([]byte{0}, 7)
	for text, says := range map[string]string{
		"": "", "down": "down", "{": "parsing Avro schema 7", `"long"`: "",
		`{"type":"record","name":"r","fields":[]}`: "",
	} {
		a := verify.NewAvro(func(int) (string, error) {
			if text == "down" {
				return "", errors.New(text)
			}
			return text, nil
		})
		a.JSON(value)
		if err := a.Err(); fmt.Sprint(err) != "<nil>" && says == "" || !strings.Contains(fmt.Sprint(err), says) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// hostile are schemas of a registry, with the body of a value, that would cost a reader without bounds its stack, its
// memory or its time.
var hostile = map[string]struct{ schema, body string }{
	"a record in itself":        {`{"type":"record","name":"r","fields":[{"name":"x","type":"r"}]}`, ""},
	"a record in itself by map": {recursive, strings.Repeat("\x02\x02a", 1<<16)},
	"an array of nulls":         {field(`{"type":"array","items":"null"}`), "\x80\x80\x80\x80\x10"},
	"records that double":       {doubling(28), ""},
	"deep types": {field(strings.Repeat(`{"type":"array","items":`, 9000) + `"null"` + strings.Repeat(`}`, 9000)),
		"\x02"},
	"deep unions": {field(strings.Repeat(`[`, 9000) + `"null"` + strings.Repeat(`]`, 9000)), "\x00"},
}

const recursive = `{"type":"record","name":"r","fields":[{"name":"x","type":{"type":"map","values":"r"}}]}`

func field(of string) string {
	return `{"type":"record","name":"top","fields":[{"name":"f","type":` + of + `}]}`
}

// doubling returns a type of no bytes that has 2^n nulls.
func doubling(n int) string {
	text := `{"type":"record","name":"r0","fields":[{"name":"a","type":"null"}]}`
	for i := range n {
		text = fmt.Sprintf(`{"type":"record","name":"r%d","fields":[{"name":"a","type":%s},{"name":"b","type":"r%d"}]}`,
			i+1, text, i)
	}
	return text
}

func TestHostileSchemas(t *testing.T) {
	for name, c := range hostile {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			begun := time.Now()
			a := verify.NewAvro(func(int) (string, error) { return c.schema, nil })
			if text := a.JSON([]byte("\x00\x00\x00\x00\x07" + c.body)); text != nil {
				t.Errorf("it is read as %.100s", text)
			}
			runtime.ReadMemStats(&after)
			if took := time.Since(begun); took > 10*time.Second { // two are usual with the race detector
				t.Errorf("it took %v", took)
			}
			if size := after.TotalAlloc - before.TotalAlloc; size > 128<<20 {
				t.Errorf("it took %d bytes", size)
			}
		})
	}
}

// Any schema and any value are read within bounds, or not at all.
func FuzzAvroValue(f *testing.F) {
	for _, c := range hostile {
		f.Add(c.schema, []byte(c.body))
	}
	f.Add(field(`["null","long"]`), []byte{2, 8})
	f.Fuzz(func(t *testing.T, schema string, body []byte) {
		a := verify.NewAvro(func(int) (string, error) { return schema, nil })
		text := a.JSON(append([]byte{0, 0, 0, 0, 7}, body...))
		if limit := 2<<20 + 512*len(body) + len(schema); len(text) > limit {
			t.Errorf("%d bytes of %d", len(text), len(body))
		}
	})
}
