// Package partitioner maps keys to partitions as other producers of the same topics do, so that joins find their rows.
// Which one a topic uses must never change: every key would move.
package partitioner

import "fmt"

// Func returns the partition of a key, of 0 to partitions-1. It is pure.
type Func func(key []byte, partitions int) int32

// ByName returns "murmur2" or "fnv-1a".
func ByName(name string) (Func, error) {
	switch name {
	case "murmur2":
		return Murmur2, nil
	case "fnv-1a":
		return FNV1a, nil
	}
	return nil, fmt.Errorf("unknown partitioner %q: want murmur2 or fnv-1a", name)
}

// Murmur2 is the default of Kafka's Java producer, for keys that are not null.
func Murmur2(key []byte, partitions int) int32 {
	return int32(int(murmur2(key)&0x7fffffff) % partitions)
}

func murmur2(b []byte) uint32 {
	const (
		seed = 0x9747b28c
		m    = 0x5bd1e995
		r    = 24
	)
	h := seed ^ uint32(len(b))
	for ; len(b) >= 4; b = b[4:] {
		k := uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24
		k *= m
		k ^= k >> r
		k *= m
		h = h*m ^ k
	}
	switch len(b) {
	case 3:
		h ^= uint32(b[2]) << 16
		fallthrough
	case 2:
		h ^= uint32(b[1]) << 8
		fallthrough
	case 1:
		h = (h ^ uint32(b[0])) * m
	}
	h ^= h >> 13
	h *= m
	return h ^ h>>15
}

// FNV1a is CockroachDB's default, that of sarama: the hash is signed, and made positive after the division.
func FNV1a(key []byte, partitions int) int32 {
	h := uint32(2166136261)
	for _, c := range key {
		h = (h ^ uint32(c)) * 16777619
	}
	p := int32(h) % int32(partitions)
	if p < 0 {
		return -p
	}
	return p
}
