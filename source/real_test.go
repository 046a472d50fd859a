package source_test

import (
	"bufio"
	"encoding/json"
	"os"
	"slices"
	"testing"

	"blobfeed/source"
	"blobfeed/source/dir"
)

const real2020 = "../testdata/real-2020"

// expected returns the events of a real feed, decoded by others, as "chunk id", in the order of the chunks.
func expected(t *testing.T) (all []string, offsets map[string]int64) {
	t.Helper()
	f, err := os.Open(real2020 + "/events.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	offsets = map[string]int64{}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e struct {
			File   string `json:"_file"`
			Offset int64  `json:"_blockOffset"`
			ID     string `json:"id"`
		}
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatal(err)
		}
		all = append(all, e.File+" "+e.ID)
		offsets[e.ID] = e.Offset
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return all, offsets
}

// The bytes of a real account: every event once, in file order, at the offset of its block; and from each block's end
// exactly the rest of its shard, whatever the size of reads.
func TestRealFeed(t *testing.T) {
	want, offsets := expected(t)
	for _, size := range []int64{1000, 64 << 10, 0} {
		store, err := dir.New(real2020)
		if err != nil {
			t.Fatal(err)
		}
		feed := source.New(store, source.Options{ReadSize: size})
		var got []string
		for seg, err := range feed.Segments(t.Context(), source.Segment{}) {
			if err != nil {
				t.Fatal(err)
			}
			m, err := feed.Manifest(t.Context(), seg)
			if err != nil {
				t.Fatal(err)
			}
			if m.Begin != seg.Time() || !slices.Equal(m.Shards, []int{0}) {
				t.Errorf("%s: %+v", seg, m)
			}
			for _, shard := range m.Shards {
				var ids []string
				resume := map[source.ShardPosition]int{{}: 0}
				r := feed.Shard(m, shard, source.ShardPosition{})
				if err := r.Poll(t.Context(), m.Finalized); err != nil {
					t.Fatal(err)
				}
				var b source.Batch
				for r.Next(t.Context(), &b) == nil {
					for _, e := range b.Events {
						ids = append(ids, e.ID)
						got = append(got, b.Blob+" "+e.ID)
						if b.Offset != offsets[e.ID] {
							t.Errorf("%s: block at %d, want %d", e.ID, b.Offset, offsets[e.ID])
						}
					}
					resume[b.Next] = len(ids)
				}
				for from, n := range resume {
					again := feed.Shard(m, shard, from)
					if err := again.Poll(t.Context(), m.Finalized); err != nil {
						t.Fatal(err)
					}
					if rest, err := drain(t, again); err != nil || !slices.Equal(rest, ids[n:]) {
						t.Errorf("%s from %+v: %d events, %v, want %d", seg, from, len(rest), err, len(ids)-n)
					}
				}
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("reads of %d: %d events, want %d", size, len(got), len(want))
		}
	}
}
