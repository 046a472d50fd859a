package source_test

import (
	"errors"
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

// A shard that the manifest does not name has no prefix. Listing without one would read other shards as if it was theirs.
func TestShardNotInManifest(t *testing.T) {
	m := &memory{blobs: map[string][]byte{shardPath + "00000.avro": append(header(), block("a")...)}}
	r := source.New(m, source.Options{}).Shard(manifest(true), 7, source.ShardPosition{})
	if err := r.Poll(t.Context(), true); err == nil || m.lists != 0 {
		t.Errorf("%v after %d listings", err, m.lists)
	}
}

// What ends in .avro is a chunk. One whose place in the order is unknown must not be left out (I8).
func TestChunkWithoutNumber(t *testing.T) {
	m := &memory{blobs: map[string][]byte{shardPath + "00000.avro": header(), shardPath + "00001-a.avro": append(header(), block("a")...)}}
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

// A reader that resumes at the end of a shard downloads nothing until it grows: a restart costs one listing per shard.
func TestResumeAtTheEndReadsNothing(t *testing.T) {
	name := shardPath + "00000.avro"
	m := &memory{blobs: map[string][]byte{name: append(header(), block("a")...)}}
	r := source.New(m, source.Options{}).Shard(manifest(false), 0, source.ShardPosition{Offset: int64(len(m.blobs[name]))})
	for range 3 {
		if err := r.Poll(t.Context(), false); err != nil {
			t.Fatal(err)
		}
		if ids, err := drain(t, r); err != nil || len(ids) > 0 {
			t.Fatal(ids, err)
		}
	}
	if m.reads != 0 {
		t.Errorf("%d reads", m.reads)
	}
	m.blobs[name] = append(slices.Clone(m.blobs[name]), block("b")...)
	if err := r.Poll(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	if ids, err := drain(t, r); err != nil || strings.Join(ids, " ") != "b" {
		t.Errorf("%v, %v", ids, err)
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
