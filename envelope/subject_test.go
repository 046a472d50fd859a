package envelope

import (
	"reflect"
	"slices"
	"testing"

	"blobfeed/source"
	"blobfeed/source/ocf"
)

// Types without a rule may change a blob, which nobody can know: they are no rows. Those of newer schemas that change no
// blob are told apart.
func TestUnknownTypes(t *testing.T) {
	for _, known := range []string{"BlobLastAccessTimeUpdated", "ContainerCreated", "ContainerPropertiesUpdated"} {
		if ev := changed(func(e *ocf.Event) { e.EventType = known }); Classify(&ev) != Other {
			t.Errorf("%s is kind %d", known, Classify(&ev))
		}
	}
	if ev := changed(func(e *ocf.Event) { e.EventType = "AppendBlobDataUpdated" }); Classify(&ev) != Upsert {
		t.Errorf("an append is kind %d", Classify(&ev))
	}
	for _, unknown := range []ocf.Event{
		changed(func(e *ocf.Event) { e.EventType = "BlobTeleported" }),
		changed(func(e *ocf.Event) { e.EventType, e.API = "BlobRenamed", "RenameFile" }),
		changed(func(e *ocf.Event) { e.EventType, e.API = "UnspecifiedEventType", "UnspecifiedApi" }),
		changed(func(e *ocf.Event) { e.EventType, e.API = "", "" }),
		changed(func(e *ocf.Event) { e.EventType, e.API = "ContainerDeleted", "DeleteContainer" }),
	} {
		if kind := Classify(&unknown); kind != Unknown {
			t.Errorf("%q is kind %d", unknown.EventType, kind)
		}
		if _, _, emit := encoded(t, Options{Events: state}, unknown); emit {
			t.Errorf("%q changes a row", unknown.EventType)
		}
		r, v, emit := encoded(t, Options{Events: all, KeyInValue: true}, unknown)
		text := func(s string) any {
			if s == "" {
				return nil
			}
			return s
		}
		if !emit || v.After["event_type"] != text(unknown.EventType) || v.After["api"] != text(unknown.API) ||
			string(r.Key) != `["photos/a b.jpg"]` {
			t.Errorf("%q: %v, %s", unknown.EventType, emit, r.Value)
		}
	}
	// A known type with an api, a tier and fields that are not known is still that type.
	_, v, emit := encoded(t, Options{Events: state}, changed(func(e *ocf.Event) {
		e.SchemaVersion, e.API, e.BlobTier, e.BlobType = 99, "PutBlobFromSpace", "Lukewarm", "CloudBlob"
		e.Extra = []ocf.Pair{{Name: "contentOffset", Value: "12"}}
	}))
	if !emit || v.After["api"] != "PutBlobFromSpace" || v.After["blob_tier"] != "Lukewarm" ||
		v.After["blob_type"] != "CloudBlob" ||
		!reflect.DeepEqual(v.After["extra"], map[string]any{"contentOffset": "12"}) ||
		v.After["schema_version"] != 99.0 {
		t.Errorf("%v: %v", emit, v.After)
	}
}

// The four of the real feeds, and what else may stand in a Control event, leave no record and no error.
func TestControlEventsLeaveNothing(t *testing.T) {
	for _, subject := range []string{"/blobServices/default/containers/$blobchangefeed/blobs/meta/segments.json",
		"/blobServices/default/containers//blobs/", "", "/other"} {
		for _, mode := range []EventsMode{state, all} {
			ev := ocf.Event{EventType: "Control", API: "ControlEvent", Subject: subject, EventTime: "",
				ETag: "0xFFFFFFFFFFFFFFF"}
			var r Record
			buf, emit, err := encoder(t, Options{Events: mode}).Append([]byte("before"), &r, &ev, source.Position{})
			if emit || err != nil || string(buf) != "before" {
				t.Errorf("%q: %v, %v, %q", subject, emit, err, buf)
			}
			filter := Filter{From: Timestamp{Wall: 1 << 60}}
			if match, err := filter.Match(&ev); !match || err != nil {
				t.Errorf("%q: filtered: %v, %v", subject, !match, err)
			}
		}
	}
}

// The creation of a snapshot, or another tier of one, leaves the base blob as it is. No other change can be of a
// snapshot, so it counts, whatever its field says.
func TestSnapshots(t *testing.T) {
	for eventType, want := range map[string]Kind{
		"BlobSnapshotCreated": Other, "BlobTierChanged": Other, "BlobCreated": Upsert, "BlobPropertiesUpdated": Upsert,
		"BlobMetadataUpdated": Upsert, "BlobTagsUpdated": Upsert, "BlobDeleted": Delete,
	} {
		ev := changed(func(e *ocf.Event) { e.EventType, e.Snapshot = eventType, "2026-01-01T00:00:00.0000000Z" })
		if kind := Classify(&ev); kind != want {
			t.Errorf("%s: kind %d, want %d", eventType, kind, want)
		}
		if _, _, emit := encoded(t, Options{Events: state}, ev); emit != (want != Other) {
			t.Errorf("%s: emitted as state: %t", eventType, emit)
		}
		if _, v, emit := encoded(t, Options{Events: all}, ev); !emit || want != Delete &&
			v.After["snapshot"] != ev.Snapshot {
			t.Errorf("%s: %v, %v", eventType, emit, v.After)
		}
	}
	if ev := changed(func(e *ocf.Event) {
		e.EventType, e.API = "BlobSnapshotCreated", "SnapshotBlob"
	}); Classify(&ev) != Other {
		t.Error("the type alone does not tell")
	}
}

// A deletion that is lost leaves a blob in every copy, so each BlobDeleted counts, whatever else it says.
func TestEveryDeletionCounts(t *testing.T) {
	const old, current = "2026-01-02T00:00:00.0000000Z", "2026-01-03T00:00:00.0000000Z"
	for name, change := range map[string]func(e *ocf.Event){
		"plain": func(*ocf.Event) {},
		"soft delete": func(e *ocf.Event) {
			e.PreviousInfo = []ocf.Pair{{Name: "WasBlobSoftDeleted", Value: "true"}, {Name: "SoftDeleteSnapshot", Value: old}}
		},
		"with versions, as recorded": func(e *ocf.Event) {
			e.PreviousInfo = []ocf.Pair{{Name: "LastVersion", Value: current}}
		},
		"another version is current": func(e *ocf.Event) {
			e.BlobVersion, e.PreviousInfo = old, []ocf.Pair{{Name: "BlobVersion", Value: current}}
		},
		"another version was current": func(e *ocf.Event) {
			e.BlobVersion, e.PreviousInfo = old, []ocf.Pair{{Name: "LastVersion", Value: current}}
		},
		"snapshot": func(e *ocf.Event) { e.Snapshot = old },
	} {
		ev := changed(func(e *ocf.Event) { e.EventType, e.API = "BlobDeleted", "DeleteBlob"; change(e) })
		if _, v, emit := encoded(t, Options{Events: state, KeyInValue: true}, ev); Classify(&ev) != Delete || !emit ||
			v.After != nil || v.Key == nil {
			t.Errorf("%s: kind %d, %v, %+v", name, Classify(&ev), emit, v)
		}
	}
}

func TestAsyncOperationIsNoChange(t *testing.T) {
	for _, api := range []string{"SetBlobTier", "CopyBlob"} {
		ev := changed(func(e *ocf.Event) {
			e.EventType, e.API, e.AsyncOperationInfo = "BlobAsyncOperationInitiated", api, []ocf.Pair{
				{Name: "WasAsyncOperation", Value: "true"},
				{Name: "DestinationTier", Value: "Hot"},
			}
		})
		if _, _, emit := encoded(t, Options{Events: state}, ev); emit {
			t.Errorf("%s: it is emitted as state", api)
		}
		if _, v, emit := encoded(t, Options{Events: all}, ev); !emit ||
			!reflect.DeepEqual(v.After["async_operation_info"], map[string]any{"WasAsyncOperation": "true",
				"DestinationTier": "Hot"}) {
			t.Errorf("%s: %v, %v", api, emit, v.After)
		}
		if ev.EventType = "BlobTierChanged"; Classify(&ev) != Upsert { // when it is done
			t.Errorf("%s: the end of it is kind %d", api, Classify(&ev))
		}
	}
}

// A delete has an etag of its own: nothing is matched by etags, and the next create is a new row.
func TestNothingIsMatchedByEtags(t *testing.T) {
	enc := encoder(t, Options{KeyInValue: true})
	var kinds []Kind
	var keys []string
	for i, eventType := range []string{"BlobCreated", "BlobDeleted", "BlobCreated", "BlobDeleted"} {
		ev := changed(func(e *ocf.Event) { e.EventType, e.ETag = eventType, []string{"0x1", "0x9", "0x2", ""}[i] })
		var r Record
		if _, emit, err := enc.Append(nil, &r, &ev, source.Position{}); err != nil || !emit {
			t.Fatal(emit, err)
		}
		kinds, keys = append(kinds, r.Kind), append(keys, string(r.Key))
	}
	if !slices.Equal(kinds, []Kind{Upsert, Delete, Upsert, Delete}) || len(slices.Compact(keys)) != 1 {
		t.Errorf("%v of %v", kinds, keys)
	}
}

// What is written again after a crash is, byte for byte, what was written before it; its id tells it from all others,
// and its sequencer and "updated" order it among those of its blob, in whatever case and width the service writes them.
func TestReplaysAreTheSame(t *testing.T) {
	ids := map[string]bool{}
	last := map[string]ocf.Event{}
	for i, ev := range realEvents(t) {
		pos := source.Position{Segment: segment("2020/05/27/1500"), Chunk: 1, Offset: 1488, Index: i}
		var first, again Record
		_, emit, err := encoder(t, everything).Append(nil, &first, &ev, pos)
		if err != nil || !emit {
			t.Fatal(emit, err)
		}
		if _, _, err := encoder(t, everything).Append(make([]byte, 7, 9), &again, &ev, pos); err != nil ||
			!reflect.DeepEqual(first, again) {
			t.Fatalf("%+v and %+v, %v", first, again, err)
		}
		id := header(first, "ce_id")
		if id == "" || ids[id] || header(first, "sequence") != ev.Sequencer ||
			header(first, "position") != pos.String() {
			t.Fatalf("event %d: %v", i, first.Headers)
		}
		ids[id] = true
		if before, ok := last[string(first.Key)]; ok {
			var r Record
			if _, _, err := encoder(t, everything).Append(nil, &r, &before, pos); err != nil ||
				r.Updated.Compare(first.Updated) >= 0 {
				t.Errorf("%s: %s is not after %s, %v", first.Key, first.Updated, r.Updated, err)
			}
		}
		last[string(first.Key)] = ev
	}
	for _, c := range [][2]string{{"000000000000000000000000000002AB000000000000002d",
		"000000000000000000000000000002ab000000000000002D"},
		{"2d", "0000000000000000000000000000000000000000000000000000002D"}} {
		if a, b := logical(c[0]), logical(c[1]); a != b || a != 0x2d {
			t.Errorf("%v: %d and %d", c, a, b)
		}
	}
}

func header(r Record, key string) string {
	for _, h := range r.Headers {
		if h.Key == key {
			return string(h.Value)
		}
	}
	return ""
}
