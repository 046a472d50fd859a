package dump

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"

	"blobfeed/envelope"
	"blobfeed/internal/plain"
	"blobfeed/source"
	"blobfeed/source/dir"
	"blobfeed/source/ocf"
)

// each calls f with every event of the recorded feed.
func each(t *testing.T, f func(*ocf.Event, source.Position)) {
	t.Helper()
	store, err := dir.New("../../testdata/real-2020")
	if err != nil {
		t.Fatal(err)
	}
	feed := source.New(store, source.Options{})
	ctx := context.Background()
	for seg, err := range feed.Segments(ctx, source.Segment{}) {
		if err != nil {
			t.Fatal(err)
		}
		m, err := feed.Manifest(ctx, seg)
		if err != nil {
			t.Fatal(err)
		}
		for _, shard := range m.Shards {
			r := feed.Shard(m, shard, source.ShardPosition{})
			if err := r.Poll(ctx, m.Finalized); err != nil {
				t.Fatal(err)
			}
			var b source.Batch
			for err := r.Next(ctx, &b); !errors.Is(err, io.EOF); err = r.Next(ctx, &b) {
				if err != nil {
					t.Fatal(err)
				}
				for i := range b.Events {
					f(&b.Events[i],
						source.Position{Segment: seg, Shard: shard, Chunk: b.Chunk, Offset: b.Offset, Index: i})
				}
			}
		}
	}
}

// parsed returns doc as JSON has it.
func parsed(t *testing.T, text []byte) (doc map[string]any) {
	t.Helper()
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return doc
}

// An event is shown with the path that bridge find takes, and a chunk that the feed does not have is not called lost.
func TestDumpSpeaksOfTheFeed(t *testing.T) {
	store, err := dir.New("../../testdata/real-2020")
	if err != nil {
		t.Fatal(err)
	}
	feed := source.New(store, source.Options{})
	seg, err := source.ParseSegment("2020/05/29/1600")
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := (Dumper{Out: &out}).Segment(t.Context(), feed, seg); err != nil {
		t.Fatal(err)
	}
	if text := out.String(); !strings.Contains(text, "/foo/foo\n") || strings.Contains(text, "/blobs/") {
		t.Errorf("paths are not those of records:\n%s", text)
	}
	nowhere := source.Position{Segment: seg, Chunk: 9}
	err = Dumper{Out: &out}.Chunk(t.Context(), feed, nowhere)
	text, do := plain.SplitRemedy(err)
	if text != "the feed has no chunk log/00/2020/05/29/1600/00009.avro" || do == "" {
		t.Errorf("a chunk that is not there: %v", err)
	}
}

// An event has the columns of its record, but for those that are made of its subject.
func TestColumnsAreThoseOfRecords(t *testing.T) {
	o := envelope.Defaults(envelope.JSON, envelope.Row)
	o.Events, o.Topic, o.Account, o.Updated = envelope.EventsAll, "t", "a", false
	enc, err := envelope.NewEncoder(o)
	if err != nil {
		t.Fatal(err)
	}
	compare := func(e *ocf.Event, p source.Position) {
		t.Helper()
		var r envelope.Record
		if _, emit, err := enc.Append(nil, &r, e, p); err != nil || !emit || r.Value == nil {
			return // a deletion, and an event that no record is made of
		}
		text, err := json.Marshal(e.Columns())
		if err != nil {
			t.Fatal(err)
		}
		got, want := parsed(t, text), map[string]any{"topic": e.Topic, "subject": e.Subject}
		for name, value := range parsed(t, r.Value) {
			m, ok := value.(map[string]any)
			if made := name == "account" || name == "container" || name == "blob" || name == "path"; !made &&
				value != nil &&
				(!ok || len(m) > 0) {
				want[name] = value
			}
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v\nwant %v", p, got, want)
		}
	}
	events := 0
	each(t, func(e *ocf.Event, p source.Position) { events++; compare(e, p) })
	if events != 717 {
		t.Errorf("%d events", events)
	}
	full := ocf.Event{
		SchemaVersion: 6, Subject: "/blobServices/default/containers/c/blobs/b",
		EventTime:     "2026-01-01T00:00:00.0000000Z",
		ContentLength: 0, HasContentLength: true,
		PreviousInfo: []ocf.Pair{{Name: "a", Value: "b"}}, AsyncOperationInfo: []ocf.Pair{{Name: "c", Value: "d"}},
		RestorePointMarker: []ocf.Pair{{Name: "e", Value: "f"}}, Extra: []ocf.Pair{{Name: "g", Value: "h"}},
		BlobPropertiesUpdated: []ocf.PropertyChange{{Name: "ContentLanguage", Current: "de", Previous: "en"}},
		BlobTagsUpdated:       []ocf.TagSet{{Name: "current", Tags: []ocf.Pair{{Name: "k", Value: "v"}}}},
	}
	fields := reflect.ValueOf(&full).Elem()
	for i := range fields.NumField() { // also those of columns that are added later
		name, f := fields.Type().Field(i).Name, fields.Field(i)
		switch {
		case f.Kind() == reflect.String && f.IsZero():
			f.SetString("some " + name)
		case f.IsZero() && name != "ContentLength":
			t.Errorf("%s is not set", name)
		}
	}
	compare(&full, source.Position{})
}
