package source_test

import (
	"context"
	"fmt"
	"iter"
	"runtime"
	"strings"
	"testing"

	"blobfeed/source"
)

// Documents, manifests and listings have a bound, far above what the service writes, and exceeding it says so.
func TestBounds(t *testing.T) {
	seg := manifest(false).Segment
	name := "idx/segments/" + seg.String() + "/meta.json"
	paths := func(n int) string {
		var list []string
		for i := range n {
			list = append(list, fmt.Sprintf(`"$blobchangefeed/log/%02d/%s/"`, i, seg))
		}
		return `{"begin":"2026-01-01T00:00:00Z","status":"Finalized","chunkFilePaths":[` + strings.Join(list, ",") +
			`]}`
	}
	const mib = 1 << 20
	for what, c := range map[string]struct {
		text string
		ok   bool
	}{
		"a thousand shards": {paths(1000), true},
		"one more":          {paths(1001), false},
		"1 MiB":             {paths(2) + strings.Repeat(" ", mib-len(paths(2))), true},
		"a byte more":       {paths(2) + strings.Repeat(" ", mib-len(paths(2))+1), false},
		"60 MiB":            {paths(2) + strings.Repeat(" ", 60*mib), false},
		"many entries":      {`{"chunkFilePaths":[` + strings.Repeat(`"",`, 20*mib/3) + `""]}`, false},
		"a path of a million": {strings.Replace(paths(1), "log/00/", "log/00/"+strings.Repeat("x", 1_000_000)+"/", 1),
			false},
		"a long number": {strings.Replace(paths(1), "log/00/", "log/"+strings.Repeat("9", 1_000)+"/", 1), false},
	} {
		m := indexed("2026-01-01T05:00:00Z", seg.String())
		m.blobs[name] = []byte(c.text)
		feed := source.New(m, source.Options{})
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := feed.Manifest(t.Context(), seg)
		runtime.ReadMemStats(&after)
		if grown := after.TotalAlloc - before.TotalAlloc; (err == nil) != c.ok || grown > 16*mib {
			t.Errorf("%s: %d bytes of memory, %.300v", what, grown, err)
		}
		if err != nil && (len(err.Error()) > 500 || !strings.Contains(err.Error(), name)) {
			t.Errorf("%s: %.600v", what, err)
		}
	}
}

// many is a store with so many chunks.
type many struct {
	memory
	chunks int
}

func (m *many) List(context.Context, string, string) iter.Seq2[source.Entry, error] {
	return func(yield func(source.Entry, error) bool) {
		for i := range m.chunks {
			if !yield(source.Entry{Name: fmt.Sprintf("%s%05d.avro", shardPath, i)}, nil) {
				return
			}
		}
	}
}

func TestBoundOfListing(t *testing.T) {
	m := &many{chunks: 10_000}
	r := source.New(m, source.Options{}).Shard(manifest(true), 0, source.ShardPosition{})
	if err := r.Poll(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	m.chunks++
	if err := r.Poll(t.Context(), true); err == nil || !strings.Contains(err.Error(), shardPath) {
		t.Errorf("one more: %v", err)
	}
}
