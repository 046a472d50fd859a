package source_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"blobfeed/source"
)

// Between the last pass and "Finalized" come a block, the rest of a torn one, and a chunk: the next pass finds all.
func TestFinalizedShardIsListedAgain(t *testing.T) {
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
func TestTornBlockWaits(t *testing.T) {
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
			if torn := n > len(first); torn != errors.As(err, &damage) || torn && damage.Offset != at.Offset ||
				done.Position() != at {
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
func TestAppendCostsOneRead(t *testing.T) {
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
func TestShardThatAppearsIsReadFromItsStart(t *testing.T) {
	m := indexed("2026-01-01T00:00:00Z", "2026/01/01/0000")
	feed, seg := source.New(m, source.Options{}), manifest(false).Segment
	read := func(paths string) (all []string) {
		m.blobs["idx/segments/2026/01/01/0000/meta.json"] = []byte(
			`{"begin":"2026-01-01T00:00:00Z","status":"Publishing","chunkFilePaths":[` + paths + `]}`,
		)
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
			m.blobs[fmt.Sprintf("log/%s/2026/01/01/0000/%05d.avro", shard, chunk)] = append(header(),
				block(fmt.Sprint(shard, "-", chunk))...)
		}
	}
	if got := read(`"log/00/2026/01/01/0000/"`); !slices.Equal(got, []string{"00-0", "00-1"}) {
		t.Error(got)
	}
	if got := read(`"log/17/2026/01/01/0000/","log/00/2026/01/01/0000/"`); !slices.Equal(got,
		[]string{"00-0", "00-1", "17-0", "17-1"}) {
		t.Error(got)
	}
}

// A chunk grows by any number of bytes between polls, rolls over, and is finalized: every event comes once, and a
// reader that starts at any position the first one had reads exactly the rest.
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
	m := &memory{blobs: map[string][]byte{shardPath + "00000.avro": first, shardPath + "00001.avro": append(header(),
		block("c")...)}}
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
