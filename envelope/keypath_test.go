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
		{Envelope: KeyOnly, Deletes: DeletesTombstone},
	} {
		t.Run(fmt.Sprintf("%+v", o), func(t *testing.T) {
			o.Events, o.Topic, o.Register = EventsState, "t", register
			e, err := NewEncoder(o)
			if err != nil {
				t.Fatal(err)
			}
			for eventType, deletes := range map[string]bool{"BlobCreated": false, "BlobDeleted": true} {
				ev := ocf.Event{Subject: subjectPrefix + "c" + "/blobs/" + odd, EventType: eventType,
					EventTime: time.Date(2026, 1, 31, 0, 0, 0, 0, time.UTC).Format(time.RFC3339Nano)}
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
