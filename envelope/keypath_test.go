package envelope

import (
	"fmt"
	"testing"
	"time"

	"blobfeed/source"
	"blobfeed/source/ocf"
)

// The path of a key is read back from each form of it, and whether a value deletes the blob from most.
func TestKeyPath(t *testing.T) {
	const odd = "a b/\"ü\"\\<&>\u0001日本.txt"
	ids := 0
	register := func(Subject) (int, error) { ids++; return 1000 + ids, nil }
	for _, o := range []Options{
		{KeyFormat: KeyJSONArray}, {KeyFormat: KeyJSONObject}, {KeyFormat: KeyString},
		{Format: Avro, KeyFormat: KeyAvro}, {Deletes: DeletesTombstone}, {Deletes: DeletesEmpty},
		{Envelope: Row, Deletes: DeletesTombstone}, {Envelope: Enriched},
		{Envelope: KeyOnly, Deletes: DeletesTombstone}, {Envelope: Bare}, {Envelope: Bare, KeyInValue: true},
		{Envelope: Bare, Updated: true, TopicInValue: true, MVCCTimestamp: true}, {Envelope: Bare, Format: Avro},
		{Envelope: Bare, Columns: []string{"etag", "content_length"}},
		{Envelope: Bare, Format: Avro, KeyFormat: KeyAvro, KeyInValue: true, TopicInValue: true},
	} {
		t.Run(fmt.Sprintf("%+v", o), func(t *testing.T) {
			o.Events, o.Topic, o.Register = EventsState, "t", register
			e, err := NewEncoder(o)
			if err != nil {
				t.Fatal(err)
			}
			for eventType, deletes := range map[string]bool{"BlobCreated": false, "BlobDeleted": true} {
				ev := ocf.Event{Subject: subjectPrefix + "c" + "/blobs/" + odd, EventType: eventType,
					ETag: "0x1", EventTime: time.Date(2026, 1, 31, 0, 0, 0, 0, time.UTC).Format(time.RFC3339Nano)}
				var r Record
				if _, emit, err := e.Append(nil, &r, &ev, source.Position{}); err != nil || !emit {
					t.Fatal(emit, err)
				}
				if container, blob, ok := e.Path(r.Key); container != "c" || blob != odd || !ok {
					t.Errorf("%q: %q %q %t", r.Key, container, blob, ok)
				}
				if e.Deletes(r.Value) != deletes {
					t.Errorf("%s: deletes %t: %q", eventType, !deletes, r.Value)
				}
			}
			for _, key := range []string{"", "x", "[]", `["c"]`, `["/b"]`, `["C/b"]`, `["c/b","d"]`, `{"path":"c"}`, "c/\xff",
				"[\"c/\ufffd\"]", "\x00\x00\x00\x00\x01\x02\x06c/"} {
				if _, _, ok := e.Path([]byte(key)); ok {
					t.Errorf("%q names a blob", key)
				}
			}
		})
	}
}

// Of a bare row that shows no etag it is not known whether it is a deletion: it may be all that there is of a blob.
func TestBareDeletions(t *testing.T) {
	register := func(Subject) (int, error) { return 7, nil }
	for _, o := range []Options{{}, {Format: Avro}} {
		o.Envelope, o.Events, o.Topic, o.Register = Bare, EventsState, "t", register
		ev := ocf.Event{Subject: subjectPrefix + "c/blobs/b", EventTime: "2026-01-31T00:00:00Z"}
		s := &Scan{ID: "scan", Updated: Timestamp{Wall: 1}, Served: time.Unix(1, 0)}
		record := func(o Options, gone bool) (*Encoder, []byte) {
			t.Helper()
			e, err := NewEncoder(o)
			if err != nil {
				t.Fatal(err)
			}
			var r Record
			if gone {
				_, err = e.AppendGone(nil, &r, &ev, s)
			} else {
				_, err = e.AppendRow(nil, &r, &ev, s)
			}
			if err != nil {
				t.Fatal(err)
			}
			return e, r.Value
		}
		e, value := record(o, true)
		if !e.Deletes(value) {
			t.Errorf("a deletion of a sweep: %q", value)
		}
		for n := range value { // whatever is cut off
			e.Deletes(value[:n])
		}
		few := o
		few.Columns = []string{"content_type"}
		if e, value = record(few, false); e.Deletes(value) {
			t.Errorf("a row with nothing to show: %q", value)
		}
		if e, value = record(few, true); e.Deletes(value) {
			t.Errorf("without an etag: %q", value)
		}
		ev.ETag = "0x1"
		if e, value = record(o, false); e.Deletes(value) {
			t.Errorf("a row: %q", value)
		}
	}
}
