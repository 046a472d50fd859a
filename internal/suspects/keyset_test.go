package suspects

import (
	"math/rand/v2"
	"testing"
)

// A set is what a map is, whatever was added and removed, also where its slots are crowded and where it wraps around.
func TestKeySet(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		s, want := newKeySet(int64(rng.IntN(200)), 1<<20), map[uint64]bool{}
		hashes := make([]uint64, 300)
		for i := range hashes {
			hashes[i] = rng.Uint64() | 1
			if rng.IntN(2) == 0 {
				hashes[i] |= 0xffff << 48 // at the end of the slots
			}
		}
		var dropped []class
		for range 2000 {
			h := hashes[rng.IntN(len(hashes))]
			switch {
			case !s.class.has(h):
			case rng.IntN(3) == 0:
				if s.remove(h) != want[h] {
					t.Fatal("a removal is wrong")
				}
				delete(want, h)
			default:
				for _, c := range s.add(h) {
					dropped = append(dropped, c)
					for k := range want {
						if c.has(k) {
							delete(want, k)
						}
					}
				}
				if s.class.has(h) {
					want[h] = true
				}
			}
			if s.count != len(want) {
				t.Fatalf("%d hashes, want %d", s.count, len(want))
			}
		}
		for _, h := range hashes {
			if _, has := s.find(h); has != want[h] {
				t.Fatalf("has %x: %t", h, has)
			}
			parts := 0
			for _, c := range append(dropped, s.class) {
				if c.has(h) {
					parts++
				}
			}
			if parts != 1 {
				t.Fatalf("%x is in %d classes", h, parts)
			}
		}
	}
}
