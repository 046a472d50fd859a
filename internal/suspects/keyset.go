package suspects

import (
	"hash/maphash"
	"math/bits"
)

// keySet is a set of keys by their hashes, which take 8 bytes each (I9): of 10 million keys, 85 MiB. With random
// hashes of 64 bits, one of 400,000 such sets has two keys with the same hash. Then one key may hide the other.
//
// A set that is full drops half of what it holds, and is of half the keys from then on.
type keySet struct {
	seed  maphash.Seed
	class class    // of the keys that are added
	slots []uint64 // open addressing with linear probing; 0 is free
	count int
}

// class is a part of all keys: those whose hash has these low bits.
type class struct {
	bits  int
	value uint64
}

func (c class) has(hash uint64) bool { return hash&(1<<c.bits-1) == c.value }

// halves divides a class.
func (c class) halves() (class, class) {
	return class{c.bits + 1, c.value}, class{c.bits + 1, c.value | 1<<c.bits}
}

// minKeys is how many keys a set has room for at least.
const minKeys = 64

// newKeySet returns a set with room for a number of keys, or for as many as fit into a number of bytes.
func newKeySet(keys int64, bytes int) *keySet {
	slots := max(min(keys+keys/8, int64(bytes)/8), minKeys*9/8)
	return &keySet{seed: maphash.MakeSeed(), slots: make([]uint64, slots)}
}

// hash returns the hash of a key, which is not 0.
func (s *keySet) hash(key []byte) uint64 { return max(maphash.Bytes(s.seed, key), 1) }

func (s *keySet) full() bool { return s.count >= len(s.slots)/10*9 }

// home is the slot that a hash belongs to. It depends on the high bits, and classes on the low ones.
func (s *keySet) home(hash uint64) int {
	slot, _ := bits.Mul64(hash, uint64(len(s.slots)))
	return int(slot)
}

// find returns the slot of a hash, or the free slot where it would be.
func (s *keySet) find(hash uint64) (slot int, has bool) {
	for slot = s.home(hash); s.slots[slot] != 0; {
		if s.slots[slot] == hash {
			return slot, true
		}
		if slot++; slot == len(s.slots) {
			slot = 0
		}
	}
	return slot, false
}

// add adds a hash of the class. A set that is full is divided first, and more returns the parts that it drops.
func (s *keySet) add(hash uint64) (more []class) {
	slot, has := s.find(hash)
	if has {
		return nil
	}
	for s.full() {
		mine, other := s.class.halves()
		s.class, more = mine, append(more, other)
		s.drop(other)
	}
	if len(more) > 0 {
		if !s.class.has(hash) {
			return more
		}
		slot, _ = s.find(hash)
	}
	s.slots[slot] = hash
	s.count++
	return more
}

// remove removes a hash, and reports whether the set had it.
func (s *keySet) remove(hash uint64) bool {
	slot, has := s.find(hash)
	if has {
		s.removeAt(slot)
	}
	return has
}

// removeAt frees a slot, and moves what follows back, so that a search meets no free slot before what it is for.
func (s *keySet) removeAt(free int) {
	s.count--
	for slot := free; ; {
		if slot++; slot == len(s.slots) {
			slot = 0
		}
		hash := s.slots[slot]
		if hash == 0 {
			break
		}
		home := s.home(hash)
		if free <= slot && free < home && home <= slot || free > slot && (free < home || home <= slot) {
			continue // it would be before its home
		}
		s.slots[free], free = hash, slot
	}
	s.slots[free] = 0
}

// drop removes the hashes of a class.
func (s *keySet) drop(c class) {
	for slot := range s.slots {
		for s.slots[slot] != 0 && c.has(s.slots[slot]) {
			s.removeAt(slot) // another hash may move here
		}
	}
}

func (s *keySet) clear() {
	clear(s.slots)
	s.count = 0
}
