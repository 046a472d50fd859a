package source_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"blobfeed/source"
)

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
