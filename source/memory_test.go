package source_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"blobfeed/source"
)

// memory is a Store whose blobs tests change as they like.
type memory struct {
	blobs  map[string][]byte
	lists  int
	reads  atomic.Int64
	bytes  atomic.Int64
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
	m.reads.Add(1)
	if m.fail != nil {
		if err := m.fail(name); err != nil {
			return 0, err
		}
	}
	b, ok := m.blobs[name]
	if !ok {
		return 0, source.ErrNotFound
	}
	n := copy(p, b[min(offset, int64(len(b))):])
	m.bytes.Add(int64(n))
	return n, nil
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

func segmentOf(t testing.TB, name string) source.Segment {
	t.Helper()
	s, err := source.ParseSegment(name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// segments returns those that the feed in m yields after one, by their names.
func segments(t *testing.T, m *memory, after string) string {
	t.Helper()
	var all []string
	for s, err := range source.New(m, source.Options{}).Segments(t.Context(), segmentOf(t, after)) {
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
