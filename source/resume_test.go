package source_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"blobfeed/source"
)

// A position that no reader ever returned, as from a damaged checkpoint, is an error: not a panic, and not the end of
// the shard, which would skip all of it (I8).
func TestPositionFromElsewhere(t *testing.T) {
	onlyHeader := map[string][]byte{shardPath + "00000.avro": header()}
	for name, from := range map[string]source.ShardPosition{
		"negative chunk":    {Chunk: -1},
		"negative offset":   {Offset: -5},
		"inside the header": {Offset: 10},
	} {
		r := source.New(&memory{blobs: onlyHeader}, source.Options{}).Shard(manifest(true), 0, from)
		err := r.Poll(t.Context(), true)
		if err == nil {
			_, err = drain(t, r)
		}
		var damage *source.DamageError
		if !errors.As(err, &damage) || damage.Offset != from.Offset || damage.Hint == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A shard that the manifest does not name has no prefix. Listing without one would read other shards as if it was
// theirs.
func TestShardNotInManifest(t *testing.T) {
	m := &memory{blobs: map[string][]byte{shardPath + "00000.avro": append(header(), block("a")...)}}
	r := source.New(m, source.Options{}).Shard(manifest(true), 7, source.ShardPosition{})
	if err := r.Poll(t.Context(), true); err == nil || m.lists != 0 {
		t.Errorf("%v after %d listings", err, m.lists)
	}
}

// What ends in .avro is a chunk. One whose place in the order is unknown must not be left out (I8).
func TestChunkWithoutNumber(t *testing.T) {
	m := &memory{blobs: map[string][]byte{shardPath + "00000.avro": header(),
		shardPath + "00001-a.avro": append(header(), block("a")...)}}
	r := source.New(m, source.Options{}).Shard(manifest(true), 0, source.ShardPosition{})
	var damage *source.DamageError
	if err := r.Poll(t.Context(), true); !errors.As(err, &damage) || damage.Blob != shardPath+"00001-a.avro" {
		t.Errorf("%v", err)
	}
	delete(m.blobs, shardPath+"00001-a.avro")
	m.blobs[shardPath+"00001.avro.tmp"] = []byte("no chunk")
	m.blobs[shardPath+"notes"] = nil
	if err := r.Poll(t.Context(), true); err != nil {
		t.Errorf("with other files: %v", err)
	}
}

// From every block's end, for every size of reads, what follows is the rest; also over the end of a chunk.
func TestResumeAtEveryBlock(t *testing.T) {
	m := &memory{blobs: map[string][]byte{}}
	for c, name := range []string{"00000", "00001", "00002", "00003"} {
		b := header() // 00002 has no block
		if c != 2 {
			for i := range 4 {
				b = append(b, block(numbers(c*8+i*2, c*8+i*2+2)...)...)
			}
		}
		m.blobs[shardPath+name+".avro"] = b
	}
	want := append(numbers(0, 16), numbers(24, 32)...)
	for _, size := range []int64{1, 7, 64, 150, 1 << 20} {
		feed := source.New(m, source.Options{ReadSize: size})
		all := feed.Shard(manifest(true), 0, source.ShardPosition{})
		if err := all.Poll(t.Context(), true); err != nil {
			t.Fatal(err)
		}
		var b source.Batch
		for read := 0; read < len(want); {
			if err := all.Next(t.Context(), &b); err != nil {
				t.Fatal(err)
			}
			read += len(b.Events)
			r := feed.Shard(manifest(true), 0, b.Next)
			if err := r.Poll(t.Context(), true); err != nil {
				t.Fatal(err)
			}
			if ids, err := drain(t, r); err != nil || !slices.Equal(ids, want[read:]) {
				t.Fatalf("reads of %d, from %+v: %v, %v", size, b.Next, ids, err)
			}
		}
	}
}

// A reader that has read all there is downloads nothing until more comes, also after a restart, which costs one
// listing.
func TestNothingNewReadsNothing(t *testing.T) {
	name := shardPath + "00000.avro"
	first := append(header(), block("a")...)
	for from, reads := range map[source.ShardPosition]int64{{}: 1, {Offset: int64(len(first))}: 0} {
		m := &memory{blobs: map[string][]byte{name: first}}
		r := source.New(m, source.Options{}).Shard(manifest(false), 0, from)
		for range 3 {
			pollAndDrain(t, r, false)
		}
		if m.reads.Load() != reads {
			t.Errorf("from %s: %d reads, want %d", from, m.reads.Load(), reads)
		}
		m.blobs[name] = append(slices.Clone(first), block("b")...)
		if ids := pollAndDrain(t, r, true); !slices.Equal(ids, []string{"b"}) {
			t.Errorf("from %s: %v", from, ids)
		}
	}
}

func TestResumeAtTheEndOfAChunk(t *testing.T) {
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
			if ids := pollAndDrain(t, r, finalized); len(ids) > 0 ||
				r.Position() != (source.ShardPosition{Chunk: 1, Offset: size}) {
				t.Errorf("again: %v at %+v", ids, r.Position())
			}
		}
	}
}

// Segment times are exact to 15 minutes only: a reader, resumed or not, gives all events whatever their times.
func TestEventsOutsideTheirSegmentAreRead(t *testing.T) {
	schema := `{"type":"record","name":"E","fields":[{"name":"id","type":"string"},{"name":"eventTime","type":"string"}]}`
	head := append([]byte("Obj\x01\x02\x16avro.schema"), byte(len(schema)<<1&0x7f|0x80), byte(len(schema)>>6))
	head = append(append(append(head, schema...), 0), syncMarker...)
	chunk := head
	var ends []int
	times := []string{"2025-12-31T23:46:00.0000000Z", "2026-01-01T00:30:00.0000000Z", "2026-01-01T01:14:00.0000000Z",
		"2025-12-31T23:50:00.0000000Z", "1999-01-01T00:00:00.0000000Z", ""}
	for i, at := range times {
		data := append([]byte{2, byte('a' + i), byte(len(at) << 1)}, at...)
		chunk = append(append(append(chunk, 2, byte(len(data)<<1)), data...), syncMarker...)
		ends = append(ends, len(chunk))
	}
	m := &memory{blobs: map[string][]byte{shardPath + "00000.avro": chunk}}
	feed := source.New(m, source.Options{})
	if ids := pollAndDrain(t, feed.Shard(manifest(true), 0, source.ShardPosition{}), true); strings.Join(ids,
		"") != "abcdef" {
		t.Errorf("%v", ids)
	}
	for i, end := range ends {
		if ids := pollAndDrain(t, feed.Shard(manifest(true), 0, source.ShardPosition{Offset: int64(end)}),
			true); strings.Join(ids, "") != "abcdef"[i+1:] {
			t.Errorf("after %d: %v", i, ids)
		}
	}
}
