package source_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"blobfeed/internal/testing/feedsim"
	"blobfeed/source"
	"blobfeed/source/dir"
)

// A prefix without blobs: wait while the segment is open, and it is done when it is finalized.
func TestShardWithoutChunks(t *testing.T) {
	m := &memory{blobs: map[string][]byte{"log/00/2026/01/01/0100/00000.avro": append(header(),
		block("another segment's")...)}}
	r := source.New(m, source.Options{}).Shard(manifest(false), 0, source.ShardPosition{})
	for range 3 {
		if ids := pollAndDrain(t, r, false); len(ids) > 0 || r.Position() != (source.ShardPosition{}) {
			t.Fatalf("%v, at %+v", ids, r.Position())
		}
	}
	if ids := pollAndDrain(t, source.New(m, source.Options{}).Shard(manifest(true), 0, source.ShardPosition{}),
		true); len(ids) > 0 {
		t.Errorf("finalized: %v", ids)
	}
	m.blobs[shardPath+"00000.avro"] = append(header(), block("a")...)
	if ids := pollAndDrain(t, r, true); !slices.Equal(ids, []string{"a"}) {
		t.Errorf("with chunks: %v", ids)
	}
}

// Chunks that are only a beginning: of nothing, of a header, of a header alone.
func TestChunkWithoutABlock(t *testing.T) {
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
			if c.terminal != (err == nil) || err != nil && (!errors.As(err, &damage) || damage.Blob != chunk ||
				damage.Offset != 0) {
				t.Errorf("finalized: %v", err)
			}
			m.blobs[chunk] = whole
			if ids := pollAndDrain(t, r, true); !slices.Equal(ids, []string{"a"}) {
				t.Errorf("grown: %v", ids)
			}
		})
	}
	// the blob is created before its header is appended
	m := &memory{blobs: map[string][]byte{shardPath + "00000.avro": nil}}
	r := source.New(m, source.Options{}).Shard(manifest(false), 0, source.ShardPosition{})
	if ids := pollAndDrain(t, r, false); len(ids) > 0 || m.reads.Load() > 0 {
		t.Errorf("no bytes: %v in %d reads", ids, m.reads.Load())
	}
	m.blobs[shardPath+"00000.avro"] = whole
	if ids := pollAndDrain(t, r, true); !slices.Equal(ids, []string{"a"}) {
		t.Errorf("no bytes, grown: %v", ids)
	}
}

// 00000 gets its last bytes together with its successor; and the order is that of numbers, not of texts.
func TestChunksAreReadInTheOrderOfNumbers(t *testing.T) {
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
	if ids := pollAndDrain(t, source.New(m, source.Options{}).Shard(manifest(true), 0, source.ShardPosition{}),
		true); !slices.Equal(ids, numbers(0, 12)) {
		t.Errorf("in the order of texts: %v", ids)
	}
}

// What can't be read on is an error with the blob's name and the offset, again and again: it never becomes an end.
func TestDamageIsNeverAnEnd(t *testing.T) {
	good := slices.Concat(header(), block("a"), block("b"))
	second := int64(len(good) - len(block("b")))
	other := slices.Concat(header()[:len(header())-16], bytes.Repeat([]byte{8}, 16),
		bytes.ReplaceAll(block("a"), syncMarker, bytes.Repeat([]byte{8}, 16)))
	chunk := func(i int) string { return fmt.Sprintf("%s%05d.avro", shardPath, i) }
	for name, c := range map[string]struct {
		blobs map[int][]byte
		from  source.ShardPosition
		blob  string
		at    int64
	}{
		"offset behind the end": {map[int][]byte{0: good}, source.ShardPosition{Offset: int64(len(good)) + 1},
			chunk(0), int64(len(good)) + 1},
		"offset in a chunk of nothing": {map[int][]byte{0: nil}, source.ShardPosition{Offset: second}, chunk(0),
			second},
		"chunk is gone":       {map[int][]byte{0: good}, source.ShardPosition{Chunk: 1}, chunk(1), 0},
		"all chunks are gone": {nil, source.ShardPosition{Offset: second}, chunk(0), second},
		"the chunk is gone, not last": {map[int][]byte{0: good, 2: good},
			source.ShardPosition{Chunk: 1, Offset: second}, chunk(1), second},
		"the first is gone":          {map[int][]byte{1: good}, source.ShardPosition{}, chunk(0), 0},
		"a header of something else": {map[int][]byte{0: []byte("<html>")}, source.ShardPosition{}, chunk(0), 0},
		"cut off before a successor": {map[int][]byte{0: good[:len(good)-3], 1: good}, source.ShardPosition{}, chunk(0),
			second},
		"a wrong sync marker": {map[int][]byte{0: append(slices.Clone(good[:len(good)-1]), 8)}, source.ShardPosition{},
			chunk(0), second},
		"one between is gone": {map[int][]byte{0: good, 2: good}, source.ShardPosition{}, chunk(1), 0},
		"inside a block": {map[int][]byte{0: good}, source.ShardPosition{Offset: second - 3}, chunk(0),
			second - 3},
		"another file's bytes": {map[int][]byte{0: slices.Concat(good, other[len(other)-len(block("a")):])},
			source.ShardPosition{}, chunk(0), int64(len(good))},
		"zeros at the end": {map[int][]byte{0: slices.Concat(good, make([]byte, 64))}, source.ShardPosition{}, chunk(0),
			int64(len(good))},
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
				if !errors.As(err, &damage) || damage.Blob != c.blob || damage.Offset != c.at ||
					!strings.Contains(err.Error(), fmt.Sprint("offset ", c.at)) {
					t.Errorf("%s (finalized: %v): %v", name, finalized, err)
				}
			}
		}
	}
}

// All files have the same sync marker, and a blob's name may hold it: chunks are told apart by name, blocks by length.
func TestSyncMarkerIsNoIdentity(t *testing.T) {
	evil := "x" + string(syncMarker) + "y"
	// the same marker and size, another schema
	wider := bytes.Replace(header(), []byte(`"name":"id"`), []byte(`"name":"no"`), 1)
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
func TestSchemaChangesBetweenChunks(t *testing.T) {
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
func TestEventsComeInFileOrder(t *testing.T) {
	ids := []string{"c", "a", "b", "a", "z", "0"}
	m := &memory{blobs: map[string][]byte{
		shardPath + "00000.avro": slices.Concat(header(), block(ids[:3]...), block(ids[3])),
		shardPath + "00001.avro": slices.Concat(header(), block(ids[4:]...)),
	}}
	if got := pollAndDrain(t, source.New(m, source.Options{}).Shard(manifest(true), 0, source.ShardPosition{}),
		true); !slices.Equal(got, ids) {
		t.Errorf("made: %v", got)
	}
	root := t.TempDir()
	var want []string
	backwards := 0
	var before feedsim.Expected
	if err := feedsim.Write(t.Context(), feedsim.Dir(root), feedsim.Spec{EventsPerSegment: 500, ChunksPerShard: 3},
		func(e feedsim.Expected) {
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
