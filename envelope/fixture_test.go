package envelope

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"blobfeed/source"
	"blobfeed/source/ocf"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// realEvents decodes the real feed.
func realEvents(t testing.TB) []ocf.Event {
	t.Helper()
	return slices.Concat(realBlocks(t)...)
}

// realBlocks are its events, block for block as the engine encodes them.
func realBlocks(t testing.TB) (blocks [][]ocf.Event) {
	t.Helper()
	files, err := filepath.Glob("../testdata/real-2020/log/*/*/*/*/*/*.avro")
	if err != nil || len(files) == 0 {
		t.Fatalf("no chunks: %v", err)
	}
	for _, f := range files {
		blocks = append(blocks, blocksOf(t, f)...)
	}
	return blocks
}

// blocksOf decodes a chunk.
func blocksOf(t testing.TB, file string) (blocks [][]ocf.Event) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	h, err := ocf.ParseHeader(b, ocf.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	for off := h.Size; off < int64(len(b)); {
		blk, err := h.ReadBlock(b[off:], off)
		if err != nil {
			t.Fatal(err)
		}
		evs, err := h.Events(blk, nil)
		if err != nil {
			t.Fatal(err)
		}
		blocks = append(blocks, evs)
		off = blk.End
	}
	return blocks
}

// segment parses the name of a segment.
func segment(name string) source.Segment {
	s, err := source.ParseSegment(name)
	if err != nil {
		panic(err)
	}
	return s
}

func encoder(t testing.TB, o Options) *Encoder {
	t.Helper()
	e, err := NewEncoder(o)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

var everything = Options{Account: "acct", Events: EventsAll, Updated: true, KeyInValue: true}

// made are events of types and with fields that the real feed of 2020 lacks. Tests take some of them by their number:
// add events at the end.
func made() []ocf.Event {
	base := ocf.Event{
		SchemaVersion: 6,
		Topic:         "/subscriptions/s/resourceGroups/g/providers/Microsoft.Storage/storageAccounts/simacct",
		Subject:       "/blobServices/default/containers/photos/blobs/a b.jpg", EventType: "BlobCreated", API: "PutBlob",
		EventTime: "2025-10-05T06:07:08.0000001Z",
		ID:        "id-1", ETag: "0x8D", ContentLength: 5, HasContentLength: true, BlobType: "BlockBlob",
		Sequencer: "00000000000000000000000000000293000000000058eb1f",
	}
	with := func(change func(*ocf.Event)) ocf.Event {
		e := base
		change(&e)
		return e
	}
	named := func(name string) ocf.Event {
		return with(func(e *ocf.Event) { e.Subject = "/blobServices/default/containers/$web/blobs/" + name })
	}
	return []ocf.Event{
		base,
		with(func(e *ocf.Event) { e.EventType, e.API = "BlobDeleted", "DeleteBlob" }),
		with(func(e *ocf.Event) {
			e.EventType, e.API, e.Snapshot = "BlobSnapshotCreated", "SnapshotBlob", "2025-10-05T06:00:00.0000000Z"
		}),
		with(func(e *ocf.Event) {
			e.EventType, e.API = "BlobPropertiesUpdated", "SetBlobTags"
			e.BlobTagsUpdated = []ocf.TagSet{{Name: "previous", Tags: []ocf.Pair{{Name: "k", Value: "1"},
				{Name: "a", Value: "&<>"}}}, {Name: "current"}}
			e.BlobPropertiesUpdated = []ocf.PropertyChange{{Name: "ContentType", Current: "a/b", Previous: ""},
				{Name: "CacheControl", Current: "x", Previous: "y"}}
		}),
		with(func(e *ocf.Event) {
			e.EventType, e.API, e.BlobTier = "BlobTierChanged", "SetBlobTier", "Cold"
			e.PreviousInfo = []ocf.Pair{{Name: "PreviousTier", Value: "Hot"}}
		}),
		with(func(e *ocf.Event) {
			e.EventType, e.API = "BlobAsyncOperationInitiated", "SetBlobTier"
			e.AsyncOperationInfo = []ocf.Pair{{Name: "WasAsyncOperation", Value: "true"},
				{Name: "DestinationTier", Value: "Hot"}}
		}),
		with(func(e *ocf.Event) { e.EventType, e.API = "BlobSomething", "UndeleteBlob" }),
		with(func(e *ocf.Event) {
			e.EventType, e.API, e.Subject, e.HasContentLength = "ContainerCreated", "CreateContainer",
				"/blobServices/default/containers/new", false
		}),
		with(func(e *ocf.Event) {
			e.EventType = "BlobBrandNew"
			e.Extra = []ocf.Pair{{Name: "z", Value: "1"}, {Name: "contentOffset", Value: "12"}}
		}),
		named("x/blobs/y"), named("/leading/"), named("100%25 #+?é😀\u2028"), named("q\"b\\t\tn\nr\rb\bf\f\x01\x7f"),
		named("bad\xff\xfeutf8"),
	}
}
