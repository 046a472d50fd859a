package source_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"blobfeed/source"
)

// memory is a Store whose blobs tests change as they like.
type memory struct {
	blobs  map[string][]byte
	lists  int
	reads  int
	onList func()
	fail   func(name string) error // of reads
}

func (m *memory) List(_ context.Context, prefix, delimiter string) iter.Seq2[source.Entry, error] {
	m.lists++
	var entries []source.Entry
	for name, b := range m.blobs {
		if !strings.HasPrefix(name, prefix) {
			continue
		}
		e := source.Entry{Name: name, Size: int64(len(b))}
		if i := strings.Index(name[len(prefix):], "/"); delimiter != "" && i >= 0 {
			e = source.Entry{Name: name[:len(prefix)+i+1], IsPrefix: true}
		}
		if !slices.Contains(entries, e) {
			entries = append(entries, e)
		}
	}
	slices.SortFunc(entries, func(a, b source.Entry) int { return strings.Compare(a.Name, b.Name) })
	if m.onList != nil {
		m.onList()
	}
	return func(yield func(source.Entry, error) bool) {
		for _, e := range entries {
			if !yield(e, nil) {
				return
			}
		}
	}
}

func (m *memory) ReadAt(_ context.Context, name string, p []byte, offset int64) (int, error) {
	m.reads++
	if m.fail != nil {
		if err := m.fail(name); err != nil {
			return 0, err
		}
	}
	b, ok := m.blobs[name]
	if !ok {
		return 0, source.ErrNotFound
	}
	return copy(p, b[min(offset, int64(len(b))):]), nil
}

const shardPath = "log/00/2026/01/01/0000/"

var syncMarker = bytes.Repeat([]byte{9}, 16)

// header is a chunk's header with a schema of one field.
func header() []byte {
	schema := `{"type":"record","name":"E","fields":[{"name":"id","type":"string"}]}`
	b := append([]byte("Obj\x01\x02\x16avro.schema"), byte(len(schema)<<1&0x7f|0x80), byte(len(schema)>>6))
	return append(append(append(b, schema...), 0), syncMarker...)
}

// block holds one event for each id, which are shorter than 64 bytes.
func block(ids ...string) []byte {
	var data []byte
	for _, id := range ids {
		data = append(append(data, byte(len(id)<<1)), id...)
	}
	b := []byte{byte(len(ids) << 1), byte(len(data)<<1&0x7f | 0x80), byte(len(data) >> 6)}
	return append(append(b, data...), syncMarker...)
}

func manifest(finalized bool) source.Manifest {
	seg, err := source.ParseSegment("2026/01/01/0000")
	if err != nil {
		panic(err)
	}
	return source.Manifest{Segment: seg, Finalized: finalized, Shards: []int{0}, Paths: map[int]string{0: shardPath}}
}

// drain reads to the end of the listing.
func drain(t *testing.T, r *source.ShardReader) (ids []string, err error) {
	t.Helper()
	var b source.Batch
	for {
		if err := r.Next(t.Context(), &b); err != nil {
			if errors.Is(err, io.EOF) {
				return ids, nil
			}
			return ids, err
		}
		for _, e := range b.Events {
			ids = append(ids, e.ID)
		}
		if b.Next != r.Position() {
			t.Errorf("the batch ends at %+v, the reader is at %+v", b.Next, r.Position())
		}
	}
}

func numbers(from, to int) (ids []string) {
	for i := from; i < to; i++ {
		ids = append(ids, fmt.Sprint("event-", i))
	}
	return ids
}

// A chunk grows by any number of bytes between polls, rolls over, and is finalized: every event comes once, and a reader
// that starts at any position the first one had reads exactly the rest.
func TestShardGrowsAnyhow(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	var whole [3][]byte
	for c := range whole {
		whole[c] = header()
		for b := range 5 {
			whole[c] = append(whole[c], block(numbers(c*50+b*10, c*50+b*10+10)...)...)
		}
	}
	for range 300 {
		m := &memory{blobs: map[string][]byte{}}
		feed := source.New(m, source.Options{ReadSize: int64(1 + rng.IntN(400))})
		r := feed.Shard(manifest(false), 0, source.ShardPosition{})
		var got []string
		positions := map[source.ShardPosition]int{}
		poll := func(finalized bool) {
			if err := r.Poll(t.Context(), finalized); err != nil {
				t.Fatal(err)
			}
			ids, err := drain(t, r)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, ids...)
			positions[r.Position()] = len(got)
		}
		for c := range whole {
			name := fmt.Sprintf("%s%05d.avro", shardPath, c)
			for n := 0; n < len(whole[c]); {
				n = min(len(whole[c]), n+rng.IntN(500))
				m.blobs[name] = whole[c][:n]
				if rng.IntN(3) > 0 {
					poll(false)
				}
			}
		}
		poll(true)
		if !slices.Equal(got, numbers(0, 150)) {
			t.Fatalf("got %d events: %v", len(got), got)
		}
		for pos, read := range positions {
			again := feed.Shard(manifest(true), 0, pos)
			if err := again.Poll(t.Context(), true); err != nil {
				t.Fatal(err)
			}
			if rest, err := drain(t, again); err != nil || !slices.Equal(rest, numbers(read, 150)) {
				t.Fatalf("from %+v: %v, %v", pos, rest, err)
			}
		}
	}
}

// Bytes come to a chunk after it was listed and before its successor was: they are not lost.
func TestRollOverDuringListing(t *testing.T) {
	first := append(header(), block("a")...)
	m := &memory{blobs: map[string][]byte{shardPath + "00000.avro": first, shardPath + "00001.avro": append(header(), block("c")...)}}
	m.onList = func() {
		m.blobs[shardPath+"00000.avro"] = append(bytes.Clone(first), block("b")...) // after the line was made
	}
	r := source.New(m, source.Options{}).Shard(manifest(false), 0, source.ShardPosition{})
	if err := r.Poll(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	if ids, err := drain(t, r); err != nil || !slices.Equal(ids, []string{"a", "b", "c"}) {
		t.Errorf("%v, %v", ids, err)
	}
}

func TestNothingNewReadsNothing(t *testing.T) {
	m := &memory{blobs: map[string][]byte{shardPath + "00000.avro": append(header(), block("a")...)}}
	r := source.New(m, source.Options{}).Shard(manifest(false), 0, source.ShardPosition{})
	for range 3 {
		if err := r.Poll(t.Context(), false); err != nil {
			t.Fatal(err)
		}
		if _, err := drain(t, r); err != nil {
			t.Fatal(err)
		}
	}
	if m.reads != 1 {
		t.Errorf("%d reads", m.reads)
	}
}

// What is not as the feed promises is an error that names blob and offset, never the end of the feed (I8).
func TestDamage(t *testing.T) {
	good := append(header(), block("a")...)
	broken := append(bytes.Clone(good), block("b")...)
	broken[len(broken)-1]++
	for name, c := range map[string]struct {
		blobs     map[string][]byte
		from      source.ShardPosition
		finalized bool
		offset    int64
	}{
		"missing chunk":       {blobs: map[string][]byte{"00001": good}},
		"gap":                 {blobs: map[string][]byte{"00000": good, "00002": good}},
		"chunk of the cursor": {blobs: map[string][]byte{"00000": good}, from: source.ShardPosition{Chunk: 1, Offset: 10}, offset: 10},
		"no chunks any more":  {from: source.ShardPosition{Offset: 200}, offset: 200},
		"behind the end":      {blobs: map[string][]byte{"00000": good}, from: source.ShardPosition{Offset: 9999}, offset: 9999},
		"not at a block":      {blobs: map[string][]byte{"00000": good}, from: source.ShardPosition{Offset: int64(len(header())) + 1}, finalized: true, offset: int64(len(header())) + 1},
		"torn and finalized":  {blobs: map[string][]byte{"00000": good[:len(good)-3]}, finalized: true},
		"torn with successor": {blobs: map[string][]byte{"00000": good[:len(good)-3], "00001": good}},
		"torn header":         {blobs: map[string][]byte{"00000": good[:20]}, finalized: true},
		"wrong sync":          {blobs: map[string][]byte{"00000": broken}, offset: int64(len(good))},
		"no header":           {blobs: map[string][]byte{"00000": []byte("<html>")}},
	} {
		m := &memory{blobs: map[string][]byte{}}
		for chunk, b := range c.blobs {
			m.blobs[shardPath+chunk+".avro"] = b
		}
		r := source.New(m, source.Options{}).Shard(manifest(c.finalized), 0, c.from)
		err := r.Poll(t.Context(), c.finalized)
		if err == nil {
			_, err = drain(t, r)
		}
		var damage *source.DamageError
		if !errors.As(err, &damage) || damage.Offset != c.offset || !strings.HasPrefix(damage.Blob, shardPath) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, blobs := range map[string]map[string][]byte{
		"torn and open": {"00000": good[:len(good)-3]},
		"empty":         {"00000": {}},
		"no chunks":     {},
	} {
		m := &memory{blobs: map[string][]byte{}}
		for chunk, b := range blobs {
			m.blobs[shardPath+chunk+".avro"] = b
		}
		r := source.New(m, source.Options{}).Shard(manifest(false), 0, source.ShardPosition{})
		if err := r.Poll(t.Context(), false); err != nil {
			t.Errorf("%s: %v", name, err)
		} else if _, err := drain(t, r); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A read that fails leaves the reader where it was; tried again it goes on.
func TestReadErrorIsNoEnd(t *testing.T) {
	b := header()
	for i := range 20 {
		b = append(b, block(numbers(i, i+1)...)...)
	}
	calls := 0
	m := &memory{blobs: map[string][]byte{shardPath + "00000.avro": b}, fail: func(string) error {
		if calls++; calls%2 == 0 {
			return errors.New("reset by peer")
		}
		return nil
	}}
	r := source.New(m, source.Options{ReadSize: 150}).Shard(manifest(true), 0, source.ShardPosition{})
	if err := r.Poll(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	var got []string
	for range 1000 {
		ids, err := drain(t, r)
		got = append(got, ids...)
		if err == nil {
			break
		}
	}
	if !slices.Equal(got, numbers(0, 20)) {
		t.Errorf("got %v", got)
	}
}

func TestSegments(t *testing.T) {
	m := &memory{blobs: map[string][]byte{"meta/segments.json": []byte("\xef\xbb\xbf" + `{"version":0,"lastConsumable":"2021-01-01T00:15:00.000Z","x":1}`)}}
	for _, s := range []string{"1601/01/01/0000", "2019/12/31/2300", "2020/01/01/0000", "2020/01/01/0815", "2020/11/30/2300", "2021/01/01/0000", "2021/01/01/0015", "2021/01/01/0100", "2022/05/05/0000"} {
		m.blobs["idx/segments/"+s+"/meta.json"] = nil
	}
	feed := source.New(m, source.Options{})
	list := func(after string) string {
		seg, err := source.ParseSegment(after)
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		for s, err := range feed.Segments(t.Context(), seg) {
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, s.String())
		}
		return strings.Join(all, " ")
	}
	for after, want := range map[string]string{
		"":                "2019/12/31/2300 2020/01/01/0000 2020/01/01/0815 2020/11/30/2300 2021/01/01/0000 2021/01/01/0015",
		"2020/01/01/0000": "2020/01/01/0815 2020/11/30/2300 2021/01/01/0000 2021/01/01/0015",
		"2020/02/02/0000": "2020/11/30/2300 2021/01/01/0000 2021/01/01/0015",
		"2021/01/01/0015": "",
	} {
		if got := list(after); got != want {
			t.Errorf("after %q: %s, want %s", after, got, want)
		}
	}
	delete(m.blobs, "meta/segments.json")
	if got := list(""); got != "" {
		t.Errorf("without a watermark: %s", got)
	}
}

func TestManifest(t *testing.T) {
	seg, err := source.ParseSegment("2022/11/28/2100")
	if err != nil {
		t.Fatal(err)
	}
	read := func(text string) (source.Manifest, error) {
		m := &memory{blobs: map[string][]byte{"idx/segments/2022/11/28/2100/meta.json": []byte(text)}}
		return source.New(m, source.Options{ReadSize: 7}).Manifest(t.Context(), seg)
	}
	m, err := read(`{"version":0,"begin":"2022-11-28T21:00:00.000Z","intervalSecs":900,"status":"Finalized","chunkFilePaths":["$blobchangefeed/log/02/2022/11/28/2100/","log/00/2022/11/28/2100/"],"new":{}}`)
	if err != nil || !m.Finalized || !slices.Equal(m.Shards, []int{0, 2}) || m.Paths[2] != "log/02/2022/11/28/2100/" || m.Interval != 15*time.Minute {
		t.Errorf("%+v, %v", m, err)
	}
	if m, err := read(`{"begin":"2022-11-28T21:00:00.000Z","status":"Not Finalized","chunkFilePaths":[]}`); err != nil || m.Finalized || len(m.Shards) != 0 {
		t.Errorf("%+v, %v", m, err)
	}
	for _, bad := range []string{``, `{}`, `[]`, `{"begin":"2022-11-28T21:00:00.000Z","status":"Finalized"}`, `{"begin":"2022-11-28T21:00:00.000Z","status":"Finalized","chunkFilePaths":["x"]}`,
		`{"begin":"yesterday","status":"Finalized","chunkFilePaths":[]}`, `{"begin":"2022-11-28T21:00:00.000Z","status":"Finalized","chunkFilePaths":["log/00/a/","log/00/b/"]}`} {
		if m, err := read(bad); err == nil || !strings.Contains(err.Error(), "2022/11/28/2100/meta.json") {
			t.Errorf("%s: %+v, %v", bad, m, err)
		}
	}
}

func FuzzParseSegment(f *testing.F) {
	f.Add("2020/05/27/1500")
	f.Add("")
	f.Fuzz(func(t *testing.T, s string) {
		if seg, err := source.ParseSegment(s); err == nil && seg.String() != s {
			t.Errorf("%q becomes %q", s, seg)
		}
	})
}

func FuzzManifest(f *testing.F) {
	f.Add([]byte(`{"begin":"2022-11-28T21:00:00.000Z","status":"Finalized","chunkFilePaths":["$blobchangefeed/log/02/2022/11/28/2100/"]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		m := &memory{blobs: map[string][]byte{"idx/segments/2022/11/28/2100/meta.json": b, "meta/segments.json": b}}
		feed := source.New(m, source.Options{})
		seg := source.SegmentAt(time.Date(2022, 11, 28, 21, 0, 0, 0, time.UTC))
		if man, err := feed.Manifest(t.Context(), seg); err == nil && len(man.Shards) != len(man.Paths) {
			t.Errorf("%+v", man)
		}
		_, _ = feed.LastConsumable(t.Context())
	})
}
