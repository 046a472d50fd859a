package feedsim

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// A torn feed is at each moment a prefix of the whole one, ends inside headers and blocks, and is whole where a
// manifest or another chunk says so.
func TestTear(t *testing.T) {
	spec := Spec{Seed: 5, Shards: 2, BlockEvents: 5, EventsPerSegment: 400, Versions: []int{6}}
	root, ctx := t.TempDir(), t.Context()
	tear := NewTear(Dir(root), 5)
	f, err := New(tear, spec)
	must(t, err)
	whole := t.TempDir()
	g, err := New(Dir(whole), spec)
	must(t, err)
	both := func(do func(*Feed)) { do(f); do(g) }
	both(func(f *Feed) { must(t, f.Open(ctx)) })
	inHeader, inBlock := 0, 0
	for i := range 60 {
		both(func(f *Feed) {
			if i%4 == 3 {
				f.Roll()
			}
			must(t, f.Append(ctx, 12, nil))
		})
		for _, name := range chunkNames(t, root) {
			got, err := os.ReadFile(root + "/" + name)
			must(t, err)
			want, err := os.ReadFile(whole + "/" + name)
			must(t, err)
			last := name == slices.Max(withPrefix(chunkNames(t, root), name[:len("log/00/")]))
			switch {
			case !strings.HasPrefix(string(want), string(got)):
				t.Fatalf("%s is no prefix", name)
			case !last && len(got) != len(want):
				t.Fatalf("%s has a successor and only %d of %d bytes", name, len(got), len(want))
			case len(got) < len(f.versions[0].header):
				inHeader++
			case !strings.HasSuffix(string(got), string(syncMarker[:])):
				inBlock++
			}
		}
	}
	if inHeader == 0 || inBlock == 0 {
		t.Errorf("%d cuts in headers, %d in blocks", inHeader, inBlock)
	}
	both(func(f *Feed) { must(t, f.Finalize(ctx)) })
	if digest(t, root) != digest(t, whole) {
		t.Error("torn, the feed ended with other bytes")
	}
}

func withPrefix(names []string, prefix string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(n string) bool { return !strings.HasPrefix(n, prefix) })
}
