package envelope

import (
	"reflect"
	"slices"
	"testing"

	"blobfeed/source"
	"blobfeed/source/ocf"
)

func TestUnknownTypesAreNoChange(t *testing.T) {
	for _, unknown := range []ocf.Event{
		changed(func(e *ocf.Event) { e.EventType = "BlobTeleported" }),
		changed(func(e *ocf.Event) { e.EventType, e.API = "BlobRenamed", "RenameFile" }),
		changed(func(e *ocf.Event) { e.EventType, e.API = "UnspecifiedEventType", "UnspecifiedApi" }),
		changed(func(e *ocf.Event) { e.EventType, e.API = "", "" }),
	} {
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

// What happens to a snapshot leaves the base blob as it is, whatever the type of the event says.
func TestSnapshotsAreNoChange(t *testing.T) {
	for _, eventType := range []string{"BlobSnapshotCreated", "BlobCreated", "BlobPropertiesUpdated",
		"BlobMetadataUpdated", "BlobTierChanged", "BlobDeleted"} {
		ev := changed(func(e *ocf.Event) { e.EventType, e.Snapshot = eventType, "2026-01-01T00:00:00.0000000Z" })
		if kind := Classify(&ev); kind != Other {
			t.Errorf("%s: kind %d", eventType, kind)
		}
		if _, _, emit := encoded(t, Options{Events: state}, ev); emit {
			t.Errorf("%s of a snapshot is emitted as state", eventType)
		}
		if _, v, emit := encoded(t, Options{Events: all}, ev); !emit || v.After == nil ||
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

// A tombstone is for the base blob only.
func TestOnlyTheBaseBlobIsDeleted(t *testing.T) {
	for name, c := range map[string]struct {
		change func(e *ocf.Event)
		want   Kind
	}{
		"base blob": {func(*ocf.Event) {}, Delete},
		"base blob, soft delete": {func(e *ocf.Event) {
			e.PreviousInfo = []ocf.Pair{{Name: "WasBlobSoftDeleted", Value: "true"}}
		}, Delete},
		"base blob, soft delete snapshot": {func(e *ocf.Event) {
			e.PreviousInfo = []ocf.Pair{{Name: "SoftDeleteSnapshot", Value: "2026-01-01T00:00:00.0000000Z"}}
		}, Delete},
		"current version, the only one": {func(e *ocf.Event) { e.BlobVersion = "2026-01-03T00:00:00.0000000Z" },
			Delete},
		"current version, of several": {func(e *ocf.Event) {
			e.BlobVersion, e.PreviousInfo = "2026-01-03T00:00:00.0000000Z", []ocf.Pair{{Name: "LastVersion",
				Value: "2026-01-03T00:00:00.0000000Z"}}
		}, Delete},
		"current version, after another": {func(e *ocf.Event) {
			e.BlobVersion, e.PreviousInfo = "2026-01-03T00:00:00.0000000Z", []ocf.Pair{{Name: "LastVersion",
				Value: "2026-01-02T23:59:59.9999999Z"}}
		}, Delete},
		"old version, the current one stays": {func(e *ocf.Event) {
			e.BlobVersion, e.PreviousInfo = "2026-01-02T00:00:00.0000000Z", []ocf.Pair{{Name: "WasBlobSoftDeleted",
				Value: "true"}, {Name: "BlobVersion", Value: "2026-01-02T00:00:00.0000001Z"}}
		}, Other},
		"old version, another was current": {func(e *ocf.Event) {
			e.BlobVersion, e.PreviousInfo = "2026-01-02T00:00:00.0000000Z", []ocf.Pair{{Name: "LastVersion",
				Value: "2026-01-03T00:00:00.0000000Z"}}
		}, Other},
		"versions that are no times": {func(e *ocf.Event) {
			e.BlobVersion, e.PreviousInfo = "x", []ocf.Pair{{Name: "LastVersion", Value: "y"}, {Name: "BlobVersion",
				Value: "2026-01-03T00:00:00.0000000Z"}}
		}, Delete},
		"no version, a last one": {func(e *ocf.Event) {
			e.PreviousInfo = []ocf.Pair{{Name: "LastVersion", Value: "2026-01-03T00:00:00.0000000Z"}}
		}, Delete},
		"snapshot": {func(e *ocf.Event) { e.Snapshot = "2026-01-01T00:00:00.0000000Z" }, Other},
	} {
		ev := changed(func(e *ocf.Event) { e.EventType, e.API = "BlobDeleted", "DeleteBlob"; c.change(e) })
		if got := Classify(&ev); got != c.want {
			t.Errorf("%s: kind %d, want %d", name, got, c.want)
		}
		if _, v, emit := encoded(t, Options{Events: state, KeyInValue: true}, ev); emit != (c.want == Delete) ||
			emit && (v.After != nil || v.Key == nil) {
			t.Errorf("%s: %v, %+v", name, emit, v)
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
