package verify_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"

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
