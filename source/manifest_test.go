package source_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"blobfeed/internal/testing/ceiling"
	"blobfeed/source"
)

// What a manifest means does not depend on who reads it: it is refused, with the blob's name, or it says what another
// reader of the same JSON finds in it.
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
		var m source.Manifest
		var err error
		ceiling.Hold(t, 16<<20+64*uint64(len(b)), func() {
			m, err = source.New(&memory{blobs: map[string][]byte{name: b}}, source.Options{}).Manifest(t.Context(), seg)
		})
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
		if m.Segment != seg || !m.Begin.Equal(doc.Begin) || m.Interval != time.Duration(doc.IntervalSecs)*time.Second ||
			m.Interval < 0 || m.Finalized != (doc.Status == "Finalized") {
			t.Fatalf("%+v of %+v", m, doc)
		}
		if len(m.Shards) != len(doc.ChunkFilePaths) || !slices.IsSorted(m.Shards) ||
			!slices.Equal(m.Shards, slices.Sorted(maps.Keys(m.Paths))) {
			t.Fatalf("shards %v, paths %v of %v", m.Shards, m.Paths, doc.ChunkFilePaths)
		}
		for shard, path := range m.Paths {
			if shard < 0 || !strings.HasPrefix(path, "log/") || !strings.HasSuffix(path, "/") ||
				!slices.Contains(doc.ChunkFilePaths, path) && !slices.Contains(doc.ChunkFilePaths,
					"$blobchangefeed/"+path) {
				t.Fatalf("shard %d at %q of %v", shard, path, doc.ChunkFilePaths)
			}
		}
	})
}

func TestManifestIsReadAgain(t *testing.T) {
	m := indexed("2026-01-01T05:00:00Z", "2026/01/01/0000")
	feed, seg := source.New(m, source.Options{}), manifest(false).Segment
	for _, status := range []string{"Publishing", "Not Finalized", "finalized", "Finalized"} {
		// lastModifiedTime stays what it was when the segment began.
		m.blobs["idx/segments/2026/01/01/0000/meta.json"] = []byte(`{"begin":"2026-01-01T00:00:00Z","status":"` +
			status + `","chunkFilePaths":[],"storageDiagnostics":{"lastModifiedTime":"2026-01-01T00:01:05Z"}}`)
		if man, err := feed.Manifest(t.Context(), seg); err != nil || man.Finalized != (status == "Finalized") {
			t.Errorf("%s: %+v, %v", status, man, err)
		}
	}
}

func TestManifestIsReadOrInvalid(t *testing.T) {
	good := map[string]string{
		"begin": `"2026-01-01T00:00:00.000Z"`, "intervalSecs": `3600`, "status": `"Finalized"`,
		"chunkFilePaths": `["$blobchangefeed/` + shardPath + `"]`,
	}
	text := func(change map[string]string) string {
		fields := maps.Clone(good)
		maps.Copy(fields, change)
		var parts []string
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			if fields[name] != "" {
				parts = append(parts, fmt.Sprintf("%q:%s", name, fields[name]))
			}
		}
		return "{" + strings.Join(parts, ",") + "}"
	}
	const name = "idx/segments/2026/01/01/0000/meta.json"
	read := func(s string) (source.Manifest, error) {
		m := &memory{blobs: map[string][]byte{name: []byte(s)}}
		return source.New(m, source.Options{}).Manifest(t.Context(), manifest(true).Segment)
	}
	for what, s := range map[string]string{
		"as it is": text(nil),
		"BOM":      "\xef\xbb\xbf" + text(nil),
		"extra fields": text(map[string]string{"version": "7", "config": `{"numShards":9,"new":[]}`,
			"storageDiagnostics": `null`}),
		"large":         text(map[string]string{"padding": `"` + strings.Repeat("x", 100_000) + `"`}),
		"4096 bytes":    text(nil) + strings.Repeat(" ", 4096-len(text(nil))),
		"more shards":   text(map[string]string{"chunkFilePaths": `["log/02/2026/01/01/0000/","` + shardPath + `"]`}),
		"without a dir": text(map[string]string{"chunkFilePaths": `["` + shardPath + `"]`}),
	} {
		if m, err := read(s); err != nil || !m.Finalized || m.Shards[0] != 0 || m.Paths[0] != shardPath ||
			m.Interval != time.Hour {
			t.Errorf("%s: %+v, %v", what, m, err)
		}
	}
	bad := map[string]string{
		"no status": text(map[string]string{"status": ""}), "no begin": text(map[string]string{"begin": ""}),
		"no paths":              text(map[string]string{"chunkFilePaths": ""}),
		"null":                  text(map[string]string{"chunkFilePaths": "null"}),
		"a number for a status": text(map[string]string{"status": "1"}),
		"two documents":         text(nil) + text(nil), "UTF-16": "\xff\xfe{\x00}\x00", "an array": "[]",
		"an empty object":          "{}",
		"a path of something else": text(map[string]string{"chunkFilePaths": `["x"]`}),
		"no time":                  text(map[string]string{"begin": `"yesterday"`}),
		"a shard twice":            text(map[string]string{"chunkFilePaths": `["log/00/a/","log/00/b/"]`}),
	}
	for n := range len(text(nil)) { // a partial body, at every byte
		bad[fmt.Sprint("cut at ", n)] = text(nil)[:n]
	}
	for what, s := range bad {
		if m, err := read(s); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %+v, %v", what, m, err)
		}
	}
	if _, err := read("{}"); !strings.HasSuffix(err.Error(), "it lacks begin, status, chunkFilePaths") {
		t.Error(err)
	}
}
