package account

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"unicode/utf16"
)

// The list is what a sorted slice would be, in the order of UTF-16.
func TestSorted(t *testing.T) {
	order := func(a, b string) int { return slices.Compare(utf16.Encode([]rune(a)), utf16.Encode([]rune(b))) }
	rng := rand.New(rand.NewPCG(1, 2))
	var l sorted
	want := map[string]int64{}
	parts := []string{"", "a", "é", "\ue000", "\uffee", "😀", "𐀀", "日", "~"}
	for i := range int64(30_000) {
		name := parts[rng.IntN(len(parts))] + parts[rng.IntN(len(parts))] + fmt.Sprint(rng.IntN(300))
		if grow := i < 15_000; rng.IntN(4) == 0 == grow {
			_, exists := want[name]
			if _, removed := l.remove(name); removed != exists {
				t.Fatalf("%q", name)
			}
			delete(want, name)
		} else {
			l.put(entry{name: name, length: i})
			want[name] = i
		}
	}
	names := slices.SortedFunc(maps.Keys(want), order)
	for range 100 {
		from := rng.IntN(len(names) + 1)
		start := "\U0010ffff"
		if from < len(names) {
			start = names[from]
		}
		var got []string
		l.from(start, func(e *entry) bool {
			if e.length != want[e.name] {
				t.Errorf("%q is old", e.name)
			}
			got = append(got, e.name)
			return true
		})
		if !slices.Equal(got, names[from:]) || l.count != len(names) {
			t.Fatalf("from %q: %d of %d names", start, len(got), len(names)-from)
		}
	}
}

func TestCompare(t *testing.T) {
	names := []string{"", "a", "b", "é", "日", "\ud7ff", "\U00010000", "😀", "\U0010ffff", "\ue000", "\uffff"}
	for i, a := range names {
		for k, b := range names {
			if got := compare(a, b); got < 0 != (i < k) || got > 0 != (i > k) {
				t.Errorf("%q and %q: %d", a, b, got)
			}
		}
	}
}
