package source_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"blobfeed/integration/feedsim"
	"blobfeed/source"
	"blobfeed/source/dir"
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

// The tests below are rows of the list of what a reader of the feed has to get right, by their numbers. The others are in
// ocf, azure, envelope and bridge.

// segments returns those that the feed in m yields after one, by their names.
func segments(t *testing.T, m *memory, after string) string {
	t.Helper()
	seg, err := source.ParseSegment(after)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for s, err := range source.New(m, source.Options{}).Segments(t.Context(), seg) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, s.String())
	}
	return strings.Join(all, " ")
}

// indexed returns a feed with those segments, which may be read up to last.
func indexed(last string, names ...string) *memory {
	m := &memory{blobs: map[string][]byte{}}
	for _, name := range names {
		m.blobs["idx/segments/"+name+"/meta.json"] = []byte(`{}`)
	}
	if last != "" {
		m.blobs["meta/segments.json"] = []byte(`{"version":0,"lastConsumable":"` + last + `"}`)
	}
	return m
}

func TestChecklist02_NoWatermarkYet(t *testing.T) {
	m := indexed("", "1601/01/01/0000", "2020/05/27/1500")
	feed := source.New(m, source.Options{})
	for range 2 { // keep polling
		if last, err := feed.LastConsumable(t.Context()); err != nil || !last.IsZero() {
			t.Errorf("%v, %v", last, err)
		}
		if got := segments(t, m, ""); got != "" {
			t.Errorf("without a watermark: %s", got)
		}
	}
	m.blobs["meta/segments.json"] = []byte(`{"lastConsumable":"2020-05-27T15:00:00.000Z"}`)
	if got := segments(t, m, ""); got != "2020/05/27/1500" {
		t.Errorf("with one: %q", got)
	}
}

// The year counts, not the text: there are a minute, a day and years with the same digits.
func TestChecklist03_Year1601IsSkipped(t *testing.T) {
	m := indexed("2030-01-01T00:00:00Z", "1601/01/01/0000", "1601/01/01/0100", "2016/01/01/1601", "2016/01/16/0100", "2020/05/27/1601")
	if got := segments(t, m, ""); got != "2016/01/01/1601 2016/01/16/0100 2020/05/27/1601" {
		t.Error(got)
	}
	if got := segments(t, m, "2016/01/01/1601"); got != "2016/01/16/0100 2020/05/27/1601" {
		t.Error(got)
	}
}

func TestChecklist04_NothingAtOrAfterStart(t *testing.T) {
	for name, c := range map[string]struct {
		m     *memory
		after string
	}{
		"only 1601":              {indexed("2020-05-27T15:00:00Z", "1601/01/01/0000"), ""},
		"only 1601, resumed":     {indexed("2020-05-27T15:00:00Z", "1601/01/01/0000"), "2020/05/27/1400"},
		"watermark at the epoch": {indexed("1601-01-01T00:00:00Z", "1601/01/01/0000"), ""},
		"start after the newest": {indexed("2020-05-27T15:00:00Z", "2020/05/27/1400", "2020/05/27/1500"), "2020/05/27/1500"},
		"start in the future":    {indexed("2020-05-27T15:00:00Z", "2020/05/27/1500"), "2031/01/01/0000"},
	} {
		if got := segments(t, c.m, c.after); got != "" {
			t.Errorf("%s: %s", name, got)
		}
	}
	// The position is still good when there is something.
	if got := segments(t, indexed("2020-05-27T16:00:00Z", "1601/01/01/0000", "2020/05/27/1600"), "2020/05/27/1500"); got != "2020/05/27/1600" {
		t.Error(got)
	}
}

func TestChecklist05_SegmentsBelowAnHour(t *testing.T) {
	m := indexed("2020-07-30T18:10:00Z", "2020/07/30/0800", "2020/07/30/0815", "2020/07/30/0830", "2020/07/30/0900", "2020/07/30/1030", "2020/07/30/1810", "2020/07/30/1815")
	for after, want := range map[string]string{
		"":                "2020/07/30/0800 2020/07/30/0815 2020/07/30/0830 2020/07/30/0900 2020/07/30/1030 2020/07/30/1810",
		"2020/07/30/0815": "2020/07/30/0830 2020/07/30/0900 2020/07/30/1030 2020/07/30/1810",
		"2020/07/30/0829": "2020/07/30/0830 2020/07/30/0900 2020/07/30/1030 2020/07/30/1810",
	} {
		if got := segments(t, m, after); got != want {
			t.Errorf("after %q: %s", after, got)
		}
	}
	if seg, err := source.ParseSegment("2020/07/30/1810"); err != nil || !seg.Time().Equal(time.Date(2020, 7, 30, 18, 10, 0, 0, time.UTC)) {
		t.Errorf("%s, %v", seg.Time(), err)
	}
}

func TestChecklist08_NotAfterLastConsumable(t *testing.T) {
	m := indexed("", "2020/05/27/1500", "2020/05/27/1600", "2020/05/27/1700", "2020/05/28/0000", "2020/06/01/0000", "2021/01/01/0000")
	for last, want := range map[string]string{
		"2020-05-27T14:59:59.999Z":  "",
		"2020-05-27T15:59:00.000Z":  "2020/05/27/1500",
		"2020-05-27T16:00:00.000Z":  "2020/05/27/1500 2020/05/27/1600",
		"2020-05-27T18:00:00.000Z":  "2020/05/27/1500 2020/05/27/1600 2020/05/27/1700",
		"2020-05-28T02:00:00+02:00": "2020/05/27/1500 2020/05/27/1600 2020/05/27/1700 2020/05/28/0000",
	} {
		m.blobs["meta/segments.json"] = []byte(`{"lastConsumable":"` + last + `"}`)
		if got := segments(t, m, ""); got != want {
			t.Errorf("up to %s: %s, want %s", last, got, want)
		}
	}
}

// The newest segment, which is still written, may be read; its reader follows it, and never calls it done.
func TestChecklist09_OpenSegmentIsTailed(t *testing.T) {
	m := indexed("2026-01-01T00:00:00Z", "2026/01/01/0000")
	m.blobs["idx/segments/2026/01/01/0000/meta.json"] = []byte(`{"begin":"2026-01-01T00:00:00Z","intervalSecs":3600,"status":"Publishing","chunkFilePaths":["$blobchangefeed/` + shardPath + `"]}`)
	if got := segments(t, m, ""); got != "2026/01/01/0000" {
		t.Fatalf("segments: %q", got)
	}
	feed := source.New(m, source.Options{})
	man, err := feed.Manifest(t.Context(), manifest(false).Segment)
	if err != nil || man.Finalized {
		t.Fatalf("%+v, %v", man, err)
	}
	r := feed.Shard(man, 0, source.ShardPosition{})
	name := shardPath + "00000.avro"
	m.blobs[name] = header()
	for i := range 5 {
		m.blobs[name] = append(slices.Clone(m.blobs[name]), block(numbers(i, i+1)...)...)
		if ids := pollAndDrain(t, r, false); !slices.Equal(ids, numbers(i, i+1)) {
			t.Errorf("append %d: %v", i, ids)
		}
	}
}

// pollAndDrain is one pass over a shard in which nothing may fail.
func pollAndDrain(t *testing.T, r *source.ShardReader, finalized bool) []string {
	t.Helper()
	if err := r.Poll(t.Context(), finalized); err != nil {
		t.Fatal(err)
	}
	ids, err := drain(t, r)
	if err != nil {
		t.Fatal(err)
	}
	return ids
}

// Between the last pass and "Finalized" come a block, the rest of a torn one, and a chunk: the next pass finds all.
func TestChecklist12_FinalizedIsRelisted(t *testing.T) {
	torn := block("b")
	m := &memory{blobs: map[string][]byte{shardPath + "00000.avro": slices.Concat(header(), block("a"), torn[:9])}}
	r := source.New(m, source.Options{}).Shard(manifest(false), 0, source.ShardPosition{})
	if ids := pollAndDrain(t, r, false); !slices.Equal(ids, []string{"a"}) {
		t.Fatal(ids)
	}
	m.blobs[shardPath+"00000.avro"] = slices.Concat(header(), block("a"), torn, block("c"))
	m.blobs[shardPath+"00001.avro"] = slices.Concat(header(), block("d"))
	if ids, err := drain(t, r); err != nil || len(ids) > 0 {
		t.Errorf("read behind the listing: %v, %v", ids, err)
	}
	if ids := pollAndDrain(t, r, true); !slices.Equal(ids, []string{"b", "c", "d"}) {
		t.Errorf("after Finalized: %v", ids)
	}
}

func TestChecklist13_ManifestIsNotCached(t *testing.T) {
	m := indexed("2026-01-01T05:00:00Z", "2026/01/01/0000")
	feed, seg := source.New(m, source.Options{}), manifest(false).Segment
	for _, status := range []string{"Publishing", "Not Finalized", "finalized", "Finalized"} {
		// lastModifiedTime stays what it was when the segment began.
		m.blobs["idx/segments/2026/01/01/0000/meta.json"] = []byte(`{"begin":"2026-01-01T00:00:00Z","status":"` + status + `","chunkFilePaths":[],"storageDiagnostics":{"lastModifiedTime":"2026-01-01T00:01:05Z"}}`)
		if man, err := feed.Manifest(t.Context(), seg); err != nil || man.Finalized != (status == "Finalized") {
			t.Errorf("%s: %+v, %v", status, man, err)
		}
	}
}

func TestChecklist14_GapOfDays(t *testing.T) {
	m := indexed("2022-03-01T00:00:00Z", "2020/05/27/1500", "2020/05/31/2300", "2020/09/01/0000", "2022/02/28/2300")
	for after, want := range map[string]string{
		"2020/05/27/1500": "2020/05/31/2300", "2020/05/31/2300": "2020/09/01/0000", "2020/09/01/0000": "2022/02/28/2300", "2022/02/28/2300": "",
	} {
		if got, _, _ := strings.Cut(segments(t, m, after), " "); got != want {
			t.Errorf("after %s: %q, want %q", after, got, want)
		}
	}
}

func TestChecklist15_BoundHoldsInTheNextYear(t *testing.T) {
	m := indexed("2020-12-31T23:00:00Z", "2020/12/31/2200", "2020/12/31/2300", "2021/01/01/0000", "2021/01/01/0100", "2022/01/01/0000")
	if got := segments(t, m, "2020/12/31/2200"); got != "2020/12/31/2300" {
		t.Errorf("before the year's end: %s", got)
	}
	m.blobs["meta/segments.json"] = []byte(`{"lastConsumable":"2021-01-01T00:00:00Z"}`)
	for _, after := range []string{"2020/12/31/2300", "2020/12/31/2330"} {
		if got := segments(t, m, after); got != "2021/01/01/0000" {
			t.Errorf("after %s: %s", after, got)
		}
	}
}

// A prefix without blobs: wait while the segment is open, and it is done when it is finalized.
func TestChecklist18_NoChunksYet(t *testing.T) {
	m := &memory{blobs: map[string][]byte{"log/00/2026/01/01/0100/00000.avro": append(header(), block("another segment's")...)}}
	r := source.New(m, source.Options{}).Shard(manifest(false), 0, source.ShardPosition{})
	for range 3 {
		if ids := pollAndDrain(t, r, false); len(ids) > 0 || r.Position() != (source.ShardPosition{}) {
			t.Fatalf("%v, at %+v", ids, r.Position())
		}
	}
	if ids := pollAndDrain(t, source.New(m, source.Options{}).Shard(manifest(true), 0, source.ShardPosition{}), true); len(ids) > 0 {
		t.Errorf("finalized: %v", ids)
	}
	m.blobs[shardPath+"00000.avro"] = append(header(), block("a")...)
	if ids := pollAndDrain(t, r, true); !slices.Equal(ids, []string{"a"}) {
		t.Errorf("with chunks: %v", ids)
	}
}

// Chunks that are only a beginning: of nothing, of a header, of a header alone.
func TestChecklist19_BeginningsOfChunks(t *testing.T) {
	whole := append(header(), block("a")...)
	for name, c := range map[string]struct {
		size     int
		terminal bool // fine in a finalized segment
	}{
		"one byte":         {1, false},
		"magic":            {4, false},
		"half of a header": {len(header()) / 2, false},
		"header but one":   {len(header()) - 1, false},
		"only a header":    {len(header()), true},
	} {
		t.Run(name, func(t *testing.T) {
			chunk := shardPath + "00000.avro"
			m := &memory{blobs: map[string][]byte{chunk: whole[:c.size]}}
			feed := source.New(m, source.Options{})
			r := feed.Shard(manifest(false), 0, source.ShardPosition{})
			if ids := pollAndDrain(t, r, false); len(ids) > 0 || r.Position() != (source.ShardPosition{}) {
				t.Fatalf("open: %v, at %+v", ids, r.Position())
			}
			done := feed.Shard(manifest(true), 0, source.ShardPosition{})
			if err := done.Poll(t.Context(), true); err != nil {
				t.Fatal(err)
			}
			_, err := drain(t, done)
			var damage *source.DamageError
			if c.terminal != (err == nil) || err != nil && (!errors.As(err, &damage) || damage.Blob != chunk || damage.Offset != 0) {
				t.Errorf("finalized: %v", err)
			}
			m.blobs[chunk] = whole
			if ids := pollAndDrain(t, r, true); !slices.Equal(ids, []string{"a"}) {
				t.Errorf("grown: %v", ids)
			}
		})
	}
	m := &memory{blobs: map[string][]byte{shardPath + "00000.avro": nil}} // the blob is created before its header is appended
	r := source.New(m, source.Options{}).Shard(manifest(false), 0, source.ShardPosition{})
	if ids := pollAndDrain(t, r, false); len(ids) > 0 || m.reads > 0 {
		t.Errorf("no bytes: %v in %d reads", ids, m.reads)
	}
	m.blobs[shardPath+"00000.avro"] = whole
	if ids := pollAndDrain(t, r, true); !slices.Equal(ids, []string{"a"}) {
		t.Errorf("no bytes, grown: %v", ids)
	}
}

// Cut anywhere, also by reads of any size: whole blocks only, and the position at the end of the last one.
func TestChecklist20_PartialLastBlock(t *testing.T) {
	first := append(header(), block("a", "b")...)
	whole := append(slices.Clone(first), block("c", "d", "e")...)
	for n := len(first); n < len(whole); n++ {
		for _, size := range []int64{1, 5, 64, 0} {
			m := &memory{blobs: map[string][]byte{shardPath + "00000.avro": whole[:n]}}
			feed := source.New(m, source.Options{ReadSize: size})
			r := feed.Shard(manifest(false), 0, source.ShardPosition{})
			at := source.ShardPosition{Offset: int64(len(first))}
			if ids := pollAndDrain(t, r, false); !slices.Equal(ids, []string{"a", "b"}) || r.Position() != at {
				t.Fatalf("%d bytes in reads of %d: %v, at %+v", n, size, ids, r.Position())
			}
			done := feed.Shard(manifest(true), 0, at)
			if err := done.Poll(t.Context(), true); err != nil {
				t.Fatal(err)
			}
			_, err := drain(t, done)
			var damage *source.DamageError
			if torn := n > len(first); torn != errors.As(err, &damage) || torn && damage.Offset != at.Offset || done.Position() != at {
				t.Fatalf("finalized with %d bytes: %v, at %+v", n, err, done.Position())
			}
			m.blobs[shardPath+"00000.avro"] = whole
			if ids := pollAndDrain(t, r, true); !slices.Equal(ids, []string{"c", "d", "e"}) {
				t.Fatalf("grown from %d: %v", n, ids)
			}
		}
	}
}

// ranges notes what is read of which blob, and is a store.
type ranges struct {
	*memory
	read []string
}

func (r *ranges) ReadAt(ctx context.Context, name string, p []byte, offset int64) (int, error) {
	r.read = append(r.read, fmt.Sprintf("%d+%d", offset, len(p)))
	return r.memory.ReadAt(ctx, name, p, offset)
}

// As a busy shard grows: one append a minute. Each costs one read, of the new bytes alone.
func TestChecklist21_ChunkGrowsBetweenPolls(t *testing.T) {
	name := shardPath + "00000.avro"
	s := &ranges{memory: &memory{blobs: map[string][]byte{name: header()}}}
	feed := source.New(s, source.Options{})
	r := feed.Shard(manifest(false), 0, source.ShardPosition{})
	pollAndDrain(t, r, false)
	for i := range 59 {
		before := len(s.blobs[name])
		s.blobs[name] = append(slices.Clone(s.blobs[name]), block(numbers(i, i+1)...)...)
		s.read = nil
		if ids := pollAndDrain(t, r, false); !slices.Equal(ids, numbers(i, i+1)) {
			t.Fatalf("append %d: %v", i, ids)
		}
		if want := fmt.Sprintf("%d+%d", before, len(s.blobs[name])-before); !slices.Equal(s.read, []string{want}) {
			t.Fatalf("append %d: read %v, want %s", i, s.read, want)
		}
		// A reader that only has the position reads the header again, and goes on there.
		again := feed.Shard(manifest(false), 0, source.ShardPosition{Offset: int64(before)})
		if ids := pollAndDrain(t, again, false); !slices.Equal(ids, numbers(i, i+1)) {
			t.Fatalf("resumed at %d: %v", before, ids)
		}
	}
}

// 00000 gets its last bytes together with its successor; and the order is that of numbers, not of texts.
func TestChecklist22_ChunksInOrder(t *testing.T) {
	m := &memory{blobs: map[string][]byte{shardPath + "00000.avro": append(header(), block("0a")...)}}
	r := source.New(m, source.Options{}).Shard(manifest(false), 0, source.ShardPosition{})
	pollAndDrain(t, r, false)
	m.blobs[shardPath+"00000.avro"] = append(slices.Clone(m.blobs[shardPath+"00000.avro"]), block("0b")...)
	m.blobs[shardPath+"00001.avro"] = append(header(), block("1a")...)
	if ids := pollAndDrain(t, r, false); !slices.Equal(ids, []string{"0b", "1a"}) {
		t.Errorf("%v", ids)
	}
	m = &memory{blobs: map[string][]byte{}}
	for i := range 12 {
		m.blobs[fmt.Sprint(shardPath, i, ".avro")] = append(header(), block(numbers(i, i+1)...)...)
	}
	if ids := pollAndDrain(t, source.New(m, source.Options{}).Shard(manifest(true), 0, source.ShardPosition{}), true); !slices.Equal(ids, numbers(0, 12)) {
		t.Errorf("in the order of texts: %v", ids)
	}
}

// A shard that nobody has a position of, as one that comes to the manifest later, begins at its first chunk.
func TestChecklist23_ShardThatAppears(t *testing.T) {
	m := indexed("2026-01-01T00:00:00Z", "2026/01/01/0000")
	feed, seg := source.New(m, source.Options{}), manifest(false).Segment
	read := func(paths string) (all []string) {
		m.blobs["idx/segments/2026/01/01/0000/meta.json"] = []byte(`{"begin":"2026-01-01T00:00:00Z","status":"Publishing","chunkFilePaths":[` + paths + `]}`)
		man, err := feed.Manifest(t.Context(), seg)
		if err != nil {
			t.Fatal(err)
		}
		for _, shard := range man.Shards {
			all = append(all, pollAndDrain(t, feed.Shard(man, shard, source.ShardPosition{}), false)...)
		}
		return all
	}
	for _, shard := range []string{"00", "17"} {
		for chunk := range 2 {
			m.blobs[fmt.Sprintf("log/%s/2026/01/01/0000/%05d.avro", shard, chunk)] = append(header(), block(fmt.Sprint(shard, "-", chunk))...)
		}
	}
	if got := read(`"log/00/2026/01/01/0000/"`); !slices.Equal(got, []string{"00-0", "00-1"}) {
		t.Error(got)
	}
	if got := read(`"log/17/2026/01/01/0000/","log/00/2026/01/01/0000/"`); !slices.Equal(got, []string{"00-0", "00-1", "17-0", "17-1"}) {
		t.Error(got)
	}
}

func TestChecklist25_ResumeAtTheEnd(t *testing.T) {
	m := &memory{blobs: map[string][]byte{}}
	for i := range 2 {
		m.blobs[fmt.Sprintf("%s%05d.avro", shardPath, i)] = append(header(), block(numbers(i, i+1)...)...)
	}
	size := int64(len(m.blobs[shardPath+"00000.avro"]))
	for _, finalized := range []bool{false, true} {
		for pos, want := range map[source.ShardPosition][]string{
			{Chunk: 0, Offset: size}: numbers(1, 2), {Chunk: 1}: numbers(1, 2), {Chunk: 1, Offset: size}: nil,
		} {
			r := source.New(m, source.Options{}).Shard(manifest(finalized), 0, pos)
			if ids := pollAndDrain(t, r, finalized); !slices.Equal(ids, want) {
				t.Errorf("from %+v: %v", pos, ids)
			}
			if ids := pollAndDrain(t, r, finalized); len(ids) > 0 || r.Position() != (source.ShardPosition{Chunk: 1, Offset: size}) {
				t.Errorf("again: %v at %+v", ids, r.Position())
			}
		}
	}
}

// What can't be read on is an error with the blob's name and the offset, again and again: it never becomes an end.
func TestChecklist26_NothingIsSkipped(t *testing.T) {
	good := slices.Concat(header(), block("a"), block("b"))
	second := int64(len(good) - len(block("b")))
	other := slices.Concat(header()[:len(header())-16], bytes.Repeat([]byte{8}, 16), bytes.ReplaceAll(block("a"), syncMarker, bytes.Repeat([]byte{8}, 16)))
	chunk := func(i int) string { return fmt.Sprintf("%s%05d.avro", shardPath, i) }
	for name, c := range map[string]struct {
		blobs map[int][]byte
		from  source.ShardPosition
		blob  string
		at    int64
	}{
		"offset behind the end":        {map[int][]byte{0: good}, source.ShardPosition{Offset: int64(len(good)) + 1}, chunk(0), int64(len(good)) + 1},
		"offset in a chunk of nothing": {map[int][]byte{0: nil}, source.ShardPosition{Offset: second}, chunk(0), second},
		"chunk is gone":                {map[int][]byte{0: good}, source.ShardPosition{Chunk: 1}, chunk(1), 0},
		"all chunks are gone":          {nil, source.ShardPosition{Offset: second}, chunk(0), second},
		"the chunk is gone, not last":  {map[int][]byte{0: good, 2: good}, source.ShardPosition{Chunk: 1, Offset: second}, chunk(1), second},
		"one between is gone":          {map[int][]byte{0: good, 2: good}, source.ShardPosition{}, chunk(1), 0},
		"inside a block":               {map[int][]byte{0: good}, source.ShardPosition{Offset: second - 3}, chunk(0), second - 3},
		"another file's bytes":         {map[int][]byte{0: slices.Concat(good, other[len(other)-len(block("a")):])}, source.ShardPosition{}, chunk(0), int64(len(good))},
		"zeros at the end":             {map[int][]byte{0: slices.Concat(good, make([]byte, 64))}, source.ShardPosition{}, chunk(0), int64(len(good))},
	} {
		for _, finalized := range []bool{false, true} {
			m := &memory{blobs: map[string][]byte{}}
			for i, b := range c.blobs {
				m.blobs[chunk(i)] = b
			}
			r := source.New(m, source.Options{}).Shard(manifest(finalized), 0, c.from)
			for range 3 {
				err := r.Poll(t.Context(), finalized)
				if err == nil {
					_, err = drain(t, r)
				}
				var damage *source.DamageError
				if !errors.As(err, &damage) || damage.Blob != c.blob || damage.Offset != c.at || !strings.Contains(err.Error(), fmt.Sprint("offset ", c.at)) {
					t.Errorf("%s (finalized: %v): %v", name, finalized, err)
				}
			}
		}
	}
}

// Segment times are exact to 15 minutes only: a reader, resumed or not, gives all events whatever their times.
func TestChecklist28_NoFilterBySegmentTime(t *testing.T) {
	schema := `{"type":"record","name":"E","fields":[{"name":"id","type":"string"},{"name":"eventTime","type":"string"}]}`
	head := append([]byte("Obj\x01\x02\x16avro.schema"), byte(len(schema)<<1&0x7f|0x80), byte(len(schema)>>6))
	head = append(append(append(head, schema...), 0), syncMarker...)
	chunk := head
	var ends []int
	times := []string{"2025-12-31T23:46:00.0000000Z", "2026-01-01T00:30:00.0000000Z", "2026-01-01T01:14:00.0000000Z", "2025-12-31T23:50:00.0000000Z", "1999-01-01T00:00:00.0000000Z", ""}
	for i, at := range times {
		data := append([]byte{2, byte('a' + i), byte(len(at) << 1)}, at...)
		chunk = append(append(append(chunk, 2, byte(len(data)<<1)), data...), syncMarker...)
		ends = append(ends, len(chunk))
	}
	m := &memory{blobs: map[string][]byte{shardPath + "00000.avro": chunk}}
	feed := source.New(m, source.Options{})
	if ids := pollAndDrain(t, feed.Shard(manifest(true), 0, source.ShardPosition{}), true); strings.Join(ids, "") != "abcdef" {
		t.Errorf("%v", ids)
	}
	for i, end := range ends {
		if ids := pollAndDrain(t, feed.Shard(manifest(true), 0, source.ShardPosition{Offset: int64(end)}), true); strings.Join(ids, "") != "abcdef"[i+1:] {
			t.Errorf("after %d: %v", i, ids)
		}
	}
}

// All files have the same sync marker, and a blob's name may hold it: chunks are told apart by name, blocks by length.
func TestChecklist30_SyncMarkerIsNoIdentity(t *testing.T) {
	evil := "x" + string(syncMarker) + "y"
	wider := bytes.Replace(header(), []byte(`"name":"id"`), []byte(`"name":"no"`), 1) // the same marker and size, another schema
	m := &memory{blobs: map[string][]byte{
		shardPath + "00000.avro": slices.Concat(header(), block(evil, "a"), block(string(syncMarker))),
		shardPath + "00001.avro": slices.Concat(wider, block("not an id")),
		shardPath + "00002.avro": slices.Concat(header(), block("b")),
	}}
	for _, size := range []int64{1, 7, 0} {
		r := source.New(m, source.Options{ReadSize: size}).Shard(manifest(true), 0, source.ShardPosition{})
		if ids := pollAndDrain(t, r, true); !slices.Equal(ids, []string{evil, "a", string(syncMarker), "", "b"}) {
			t.Errorf("%q", ids)
		}
	}
}

// The account of 2020 changed from schema version 1 to 4 between segments; here both, and a made one, are in one shard.
func TestChecklist32_SchemaChanges(t *testing.T) {
	m := &memory{blobs: map[string][]byte{shardPath + "00001.avro": append(header(), block("made")...)}}
	for i, name := range map[int]string{0: "2020/01/21/2100", 2: "2020/05/27/1500"} {
		b, err := os.ReadFile(real2020 + "/log/00/" + name + "/00000.avro")
		if err != nil {
			t.Fatal(err)
		}
		m.blobs[fmt.Sprintf("%s%05d.avro", shardPath, i)] = b
	}
	r := source.New(m, source.Options{}).Shard(manifest(true), 0, source.ShardPosition{})
	if err := r.Poll(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	versions := map[int]map[int64]bool{0: {}, 1: {}, 2: {}}
	var b source.Batch // one for all: nothing of a version is left over in the next
	for r.Next(t.Context(), &b) == nil {
		for _, e := range b.Events {
			versions[b.Chunk][e.SchemaVersion] = true
			if (e.Subject == "") != (b.Chunk == 1) || e.ID == "" {
				t.Errorf("chunk %d: %+v", b.Chunk, e)
			}
		}
	}
	if got := fmt.Sprint(versions); got != "map[0:map[1:true] 1:map[0:true] 2:map[4:true]]" {
		t.Error(got)
	}
}

// Neither times nor sequencers are sorted in a chunk; the file's order is the order.
func TestChecklist40_FileOrder(t *testing.T) {
	ids := []string{"c", "a", "b", "a", "z", "0"}
	m := &memory{blobs: map[string][]byte{
		shardPath + "00000.avro": slices.Concat(header(), block(ids[:3]...), block(ids[3])),
		shardPath + "00001.avro": slices.Concat(header(), block(ids[4:]...)),
	}}
	if got := pollAndDrain(t, source.New(m, source.Options{}).Shard(manifest(true), 0, source.ShardPosition{}), true); !slices.Equal(got, ids) {
		t.Errorf("made: %v", got)
	}
	root := t.TempDir()
	var want []string
	backwards := 0
	var before feedsim.Expected
	if err := feedsim.Write(t.Context(), feedsim.Dir(root), feedsim.Spec{EventsPerSegment: 500, ChunksPerShard: 3}, func(e feedsim.Expected) {
		if e.EventTime < before.EventTime && e.Sequencer < before.Sequencer {
			backwards++
		}
		before = e
		want = append(want, e.ID)
	}); err != nil {
		t.Fatal(err)
	}
	store, err := dir.New(root)
	if err != nil {
		t.Fatal(err)
	}
	got := pollAndDrain(t, source.New(store, source.Options{}).Shard(manifest(true), 0, source.ShardPosition{}), true)
	if !slices.Equal(got, want) || backwards == 0 {
		t.Errorf("%d of %d events in order; times and sequencers go back %d times", len(got), len(want), backwards)
	}
}

func TestChecklist49_JSON(t *testing.T) {
	good := map[string]string{
		"begin": `"2026-01-01T00:00:00.000Z"`, "intervalSecs": `3600`, "status": `"Finalized"`, "chunkFilePaths": `["$blobchangefeed/` + shardPath + `"]`,
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
		"as it is":      text(nil),
		"BOM":           "\xef\xbb\xbf" + text(nil),
		"extra fields":  text(map[string]string{"version": "7", "config": `{"numShards":9,"new":[]}`, "storageDiagnostics": `null`}),
		"large":         text(map[string]string{"padding": `"` + strings.Repeat("x", 100_000) + `"`}),
		"4096 bytes":    text(nil) + strings.Repeat(" ", 4096-len(text(nil))),
		"without a dir": text(map[string]string{"chunkFilePaths": `["` + shardPath + `"]`}),
	} {
		if m, err := read(s); err != nil || !m.Finalized || m.Paths[0] != shardPath || m.Interval != time.Hour {
			t.Errorf("%s: %+v, %v", what, m, err)
		}
	}
	bad := map[string]string{
		"no status": text(map[string]string{"status": ""}), "no begin": text(map[string]string{"begin": ""}), "no paths": text(map[string]string{"chunkFilePaths": ""}),
		"null": text(map[string]string{"chunkFilePaths": "null"}), "a number for a status": text(map[string]string{"status": "1"}),
		"two documents": text(nil) + text(nil), "UTF-16": "\xff\xfe{\x00}\x00",
	}
	for n := range len(text(nil)) { // a partial body, at every byte
		bad[fmt.Sprint("cut at ", n)] = text(nil)[:n]
	}
	for what, s := range bad {
		if m, err := read(s); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %+v, %v", what, m, err)
		}
	}
}

// blocking is a store that never answers. It says when it was asked.
type blocking struct{ asked chan struct{} }

func (b *blocking) wait(ctx context.Context) error {
	b.asked <- struct{}{}
	<-ctx.Done()
	return ctx.Err()
}

func (b *blocking) List(ctx context.Context, _, _ string) iter.Seq2[source.Entry, error] {
	return func(yield func(source.Entry, error) bool) { yield(source.Entry{}, b.wait(ctx)) }
}

func (b *blocking) ReadAt(ctx context.Context, _ string, _ []byte, _ int64) (int, error) {
	return 0, b.wait(ctx)
}

// switched is a store that can be replaced.
type switched struct{ source.Store }

// Every call ends when its context does, as an error that says so; then it can be made again.
func TestChecklist51_Cancel(t *testing.T) {
	m := indexed("2026-01-01T00:00:00Z", "2026/01/01/0000")
	m.blobs["idx/segments/2026/01/01/0000/meta.json"] = []byte(`{"begin":"2026-01-01T00:00:00Z","status":"Publishing","chunkFilePaths":["` + shardPath + `"]}`)
	m.blobs[shardPath+"00000.avro"] = slices.Concat(header(), block("a"), block("b"))
	stuck := &blocking{make(chan struct{})}
	store := &switched{m}
	feed := source.New(store, source.Options{ReadSize: int64(len(header()) + len(block("a")))})
	r := feed.Shard(manifest(false), 0, source.ShardPosition{})
	var b source.Batch
	segment := func(ctx context.Context) error {
		for _, err := range feed.Segments(ctx, source.Segment{}) {
			return err
		}
		return errors.New("no segment")
	}
	for _, c := range []struct {
		name string
		call func(context.Context) error
	}{
		{"LastConsumable", func(ctx context.Context) error { _, err := feed.LastConsumable(ctx); return err }},
		{"Manifest", func(ctx context.Context) error { _, err := feed.Manifest(ctx, manifest(false).Segment); return err }},
		{"Segments", segment},
		{"Poll", func(ctx context.Context) error { return r.Poll(ctx, false) }},
		{"Next, header", func(ctx context.Context) error { return r.Next(ctx, &b) }},
		{"Next, block", func(ctx context.Context) error { return r.Next(ctx, &b) }},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		store.Store = stuck
		done := make(chan error)
		go func() { done <- c.call(ctx) }()
		<-stuck.asked
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", c.name, err)
		}
		store.Store = m
		if err := c.call(t.Context()); err != nil {
			t.Errorf("%s, again: %v", c.name, err)
		}
	}
	if got := b.Events[0].ID; got != "b" {
		t.Errorf("the last event is %s", got)
	}
	// In the middle of a listing, whose store does not look at the context itself.
	long := indexed("2020-12-31T00:00:00Z", "2020/01/01/0000", "2020/02/01/0000", "2020/03/01/0000")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	seen := 0
	var last error
	for _, err := range source.New(long, source.Options{}).Segments(ctx, source.Segment{}) {
		seen++
		last = err
		cancel()
	}
	if seen != 2 || !errors.Is(last, context.Canceled) {
		t.Errorf("%d segments and %v", seen, last)
	}
}

// The feed alone says what may be read: nothing here looks at a clock, or knows where it is.
func TestChecklist53_NoClock(t *testing.T) {
	var files []string
	for _, pattern := range []string{"*.go", "ocf/*.go", "dir/*.go"} { // azure's paces the renewal of credentials, and no more
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	checked := 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		tree, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		checked++
		for _, imported := range tree.Imports {
			if imported.Path.Value == `"time"` && imported.Name != nil {
				t.Errorf("%s imports time by another name, which this test does not see through", file)
			}
		}
		ast.Inspect(tree, func(n ast.Node) bool {
			s, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			x, ok := s.X.(*ast.Ident)
			if ok && x.Name == "time" && slices.Contains([]string{"Now", "Since", "Until", "Local", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"}, s.Sel.Name) {
				t.Errorf("%s uses time.%s", file, s.Sel.Name)
			}
			if s.Sel.Name == "Local" && (!ok || x.Name != "time") {
				t.Errorf("%s turns a time to the local zone", file)
			}
			return true
		})
	}
	if checked < 12 {
		t.Errorf("only %d files were looked at", checked)
	}
}
