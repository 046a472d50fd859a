package source_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"blobfeed/source"
)

// What a manifest means does not depend on who reads it: it is refused, with the blob's name, or it says what another reader
// of the same JSON finds in it.
func FuzzManifestAgainstJSON(f *testing.F) {
	for _, s := range []string{
		`{"version":0,"begin":"2022-11-28T21:00:00.000Z","intervalSecs":3600,"status":"Finalized","config":{"numShards":3},"chunkFilePaths":["$blobchangefeed/log/02/2022/11/28/2100/","log/00/2022/11/28/2100/"]}`,
		"\xef\xbb\xbf" + `{"begin":"2022-11-28T21:00:00+01:00","status":"Publishing","chunkFilePaths":[]}`,
		`{"begin":null,"status":"Finalized","chunkFilePaths":[]}`,
		`{"begin":"2022-11-28T21:00:00Z","status":"Finalized","chunkFilePaths":null}`,
		`{"begin":"2022-11-28T21:00:00Z","status":"Finalized","chunkFilePaths":["log/99999999999999999999/a/"]}`,
		`{"begin":"2022-11-28T21:00:00Z","status":"Finalized","chunkFilePaths":["log/0/a/","log/00/b/"]}`,
		`{"begin":"2022-11-28T21:00:00Z","intervalSecs":9223372036854775807,"status":"Finalized","chunkFilePaths":["log/00/"]}`,
		`[]`, `{}`, `null`, ``,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		seg := source.SegmentAt(time.Date(2022, 11, 28, 21, 0, 0, 0, time.UTC))
		name := "idx/segments/" + seg.String() + "/meta.json"
		m, err := source.New(&memory{blobs: map[string][]byte{name: b}}, source.Options{}).Manifest(t.Context(), seg)
		if err != nil {
			if !strings.Contains(err.Error(), name) {
				t.Fatalf("the error does not name the blob: %v", err)
			}
			return
		}
		var doc struct {
			Begin          time.Time
			IntervalSecs   int64
			Status         string
			ChunkFilePaths []string
		}
		if err := json.Unmarshal(bytes.TrimPrefix(b, []byte("\xef\xbb\xbf")), &doc); err != nil {
			t.Fatalf("accepted, though: %v", err)
		}
		if m.Segment != seg || !m.Begin.Equal(doc.Begin) || m.Interval != time.Duration(doc.IntervalSecs)*time.Second || m.Interval < 0 || m.Finalized != (doc.Status == "Finalized") {
			t.Fatalf("%+v of %+v", m, doc)
		}
		if len(m.Shards) != len(doc.ChunkFilePaths) || !slices.IsSorted(m.Shards) || !slices.Equal(m.Shards, slices.Sorted(maps.Keys(m.Paths))) {
			t.Fatalf("shards %v, paths %v of %v", m.Shards, m.Paths, doc.ChunkFilePaths)
		}
		for shard, path := range m.Paths {
			if shard < 0 || !strings.HasPrefix(path, "log/") || !strings.HasSuffix(path, "/") ||
				!slices.Contains(doc.ChunkFilePaths, path) && !slices.Contains(doc.ChunkFilePaths, "$blobchangefeed/"+path) {
				t.Fatalf("shard %d at %q of %v", shard, path, doc.ChunkFilePaths)
			}
		}
	})
}
