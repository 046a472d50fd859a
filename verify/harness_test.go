package verify

import (
	"fmt"
	"hash/fnv"
	"slices"
)

func partitionOf(key []byte, partitions int) int32 {
	h := fnv.New32a()
	_, _ = h.Write(key)
	return int32(h.Sum32() % uint32(partitions))
}

func eventID(n int) string { return fmt.Sprintf("%08x-901e-007a-4eb5-cc621f%06x", n*7919, n) }

// data is the n-th event of a feed, of a blob.
func data(n, blob, segment int) Record {
	key := fmt.Appendf(nil, `["photos/%d.jpg"]`, blob)
	return Record{
		Topic: "changes", Partition: partitionOf(key, partitions), Key: key, Value: []byte("{}"),
		Headers: []Header{
			{
				"ce_specversion",
				[]byte("1.0"),
			}, {"ce_id", []byte(eventID(n))}, {"ce_source", []byte("/s")}, {"ce_type", []byte("t")},
			{"ce_subject", []byte("s")}, {"ce_time", []byte("x")},
			{"updated", fmt.Appendf(nil, "%d.%010d", 1590000000000000000+int64(segment)*3600e9+int64(n), n)},
			{"sequence", fmt.Appendf(nil, "%032X%016x", 0x2ab, n)},
			{"position", fmt.Appendf(nil, "2020/05/27/%02d00/%02d/%05d/%d/%d", segment, blob%2, n/20, n/5*1000, n%5)},
		},
	}
}

// resolvedAt is the time of the marker behind a segment.
func resolvedAt(segment int) string {
	return fmt.Sprintf("%d.0000000000", 1590000000000000000+int64(segment+1)*3600e9-1)
}

func mark(partition int32, segment int) Record {
	text := []byte(resolvedAt(segment))
	return Record{
		Topic:     "changes",
		Partition: partition,
		Value:     fmt.Appendf(nil, `{"resolved":"%s"}`, text),
		Headers:   []Header{{"resolved", text}},
	}
}

// topic is a right one: 3 segments of 40 events of 8 blobs, and markers. By partition, as the offsets tell.
func topic() []Record {
	var rs []Record
	for segment := range 3 {
		for i := range 40 {
			n := segment*40 + i
			rs = append(rs, data(n, n%8, segment))
		}
		for p := range int32(partitions) {
			rs = append(rs, mark(p, segment))
		}
	}
	next := map[int32]int64{}
	for i := range rs {
		rs[i].Offset = next[rs[i].Partition]
		next[rs[i].Partition]++
	}
	return rs
}

func validators() []Validator {
	return []Validator{
		NewUnique(),
		NewOrder(),
		NewSequence(),
		NewPartition(partitions, partitionOf),
		NewResolved(partitions),
	}
}

func set(r *Record, key, value string) {
	r.Headers = slices.Clone(r.Headers)
	for i := range r.Headers {
		if r.Headers[i].Key == key {
			r.Headers[i].Value = []byte(value)
		}
	}
}

func drop(r *Record, key string) {
	r.Headers = slices.DeleteFunc(slices.Clone(r.Headers), func(h Header) bool { return h.Key == key })
}

// find returns the first record that is so.
func find(rs []Record, is func(r *Record) bool) int {
	return slices.IndexFunc(rs, func(r Record) bool { return is(&r) })
}

func isMark(r *Record) bool { return r.Key == nil }

// broken returns the names of the validators that have failed.
func broken(g *Group) (names []string) {
	for _, v := range g.validators {
		if len(v.Failures()) > 0 {
			names = append(names, name(v))
		}
	}
	return names
}

// unproved returns the names of the validators that have failed, or have judged nothing.
func unproved(g *Group) (names []string) {
	for _, v := range g.validators {
		if len(v.Failures()) > 0 || v.(interface{ Checked() int64 }).Checked() == 0 {
			names = append(names, name(v))
		}
	}
	return names
}
