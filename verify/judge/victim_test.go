package judge

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/envelope"
)

// victim is what a fault is put into: a topic, and where its markers are.
type victim struct {
	data, marks *tape
	topic       string
	times       []string // of the markers, rising
}

// changed returns a copy of a record with a change.
func changed(r *kgo.Record, change func(*kgo.Record)) *kgo.Record {
	c := *r
	c.Headers = slices.Clone(r.Headers)
	c.Key, c.Value = slices.Clone(r.Key), slices.Clone(r.Value)
	change(&c)
	return &c
}

// set replaces a header.
func set(r *kgo.Record, name string, change func(text []byte) []byte) (found bool) {
	for i, h := range r.Headers {
		if h.Key == name {
			r.Headers[i].Value, found = change(slices.Clone(h.Value)), true
		}
	}
	return found
}

// came reports whether the event of a record is in the topic more than once.
func (v *victim) came(r *kgo.Record) bool {
	n := 0
	for _, other := range v.data.records[r.Partition] {
		if other.Key != nil && header(other, "position") == header(r, "position") &&
			bytes.Equal(other.Value, r.Value) {
			n++
		}
	}
	return n > 1
}

// inData replaces records of the topic: a record in the middle of a partition, in a segment that is complete, which
// came once, is the last of its key, and no deletion.
func inData(change func(rs []*kgo.Record, i int) []*kgo.Record) func(*victim) bool {
	return func(v *victim) bool {
		p, i := v.middle()
		if i < 0 {
			return false
		}
		v.data.records[p] = change(v.data.records[p], i)
		return v.data.records[p] != nil
	}
}

// instead changes the record in the middle.
func instead(change func(*kgo.Record)) func(*victim) bool {
	return inData(func(rs []*kgo.Record, i int) []*kgo.Record {
		rs[i] = changed(rs[i], change)
		return rs
	})
}

func (v *victim) middle() (partition int32, index int) {
	before := ^uint64(0) // of a segment that is complete
	if n := len(v.times); n > 0 {
		before = wall(v.times[n-1])
	}
	for _, p := range slices.Sorted(maps.Keys(v.data.records)) {
		rs := v.data.records[p]
		last, came := map[string]int{}, map[string]int{}
		for i, r := range rs {
			if r.Key != nil {
				last[string(r.Key)] = i
				came[header(r, "position")]++
			}
		}
		for i := len(rs) / 2; i < len(rs); i++ {
			r := rs[i]
			if r.Key == nil || r.Value == nil || last[string(r.Key)] != i ||
				strings.HasSuffix(header(r, "ce_type"), "Deleted") {
				continue
			}
			if once := len(r.Headers) == 0 || came[header(r, "position")] == 1; once &&
				uint64(r.Timestamp.UnixNano()) < before {
				return p, i
			}
		}
	}
	return 0, -1
}

func wall(text string) (ns uint64) {
	at, _ := envelope.ParseTimestamp(text)
	return uint64(at.Wall)
}

// inMarkers changes each marker of a time, on all partitions or one; nil removes it.
func inMarkers(
	which func(times []string) string,
	partitions int,
	change func(*kgo.Record) *kgo.Record,
) func(*victim) bool {
	return func(v *victim) bool {
		if v.marks == nil {
			return false
		}
		at, left := which(v.times), partitions
		for _, p := range slices.Sorted(maps.Keys(v.marks.records)) {
			if left == 0 {
				break
			}
			var rs []*kgo.Record
			hit := false
			for _, r := range v.marks.records[p] {
				if r.Key == nil && bytes.Contains(r.Value, []byte(at)) {
					hit = true
					if r = change(changed(r, func(*kgo.Record) {})); r == nil {
						continue
					}
				}
				rs = append(rs, r)
			}
			v.marks.records[p] = rs
			if hit {
				left--
			}
		}
		return left < partitions
	}
}

const everywhere = 1 << 20

func gone(*kgo.Record) *kgo.Record { return nil }

func lastOf(times []string) string { return times[len(times)-1] }

// midway is a marker between others, behind a seek and a gap.
func midway(times []string) string { return times[len(times)-2] }

// saying replaces a marker's time, in the value, in the header and as the timestamp.
func saying(move func(at envelope.Timestamp) envelope.Timestamp) func(*kgo.Record) *kgo.Record {
	return func(r *kgo.Record) *kgo.Record {
		old := envelope.Timestamp{}
		for at := range r.Value {
			if at+30 <= len(r.Value) {
				if ts, err := envelope.ParseTimestamp(string(r.Value[at : at+30])); err == nil {
					old = ts
					break
				}
			}
		}
		ts := move(old)
		swap := func(text []byte) []byte { return bytes.ReplaceAll(text, []byte(old.String()), []byte(ts.String())) }
		r.Value = swap(r.Value)
		set(r, "resolved", swap)
		r.Timestamp = time.Unix(0, ts.Wall)
		return r
	}
}

func later(d time.Duration) func(envelope.Timestamp) envelope.Timestamp {
	return func(at envelope.Timestamp) envelope.Timestamp { return envelope.Timestamp{Wall: at.Wall + int64(d)} }
}

func year2099(envelope.Timestamp) envelope.Timestamp {
	return envelope.Timestamp{Wall: time.Date(2099, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano()}
}

// speakingOf replaces the partition and the offset that a marker in a topic of its own speaks of, in JSON.
func speakingOf(partition func(int32) int32, offset func(int64) int64) func(*kgo.Record) *kgo.Record {
	return func(r *kgo.Record) *kgo.Record {
		_, rest, found := bytes.Cut(r.Value, []byte(`,"partition":`))
		var p int32
		var at int64
		if _, err := fmt.Sscanf(string(rest), `%d,"offset":%d}`, &p, &at); !found || err != nil {
			return r
		}
		head, _, _ := bytes.Cut(r.Value, []byte(`,"partition":`))
		r.Value = fmt.Appendf(slices.Clone(head), `,"partition":%d,"offset":%d}`, partition(p), offset(at))
		return r
	}
}

func same(n int64) int64   { return n }
func sameOf(n int32) int32 { return n }

// besides changes a marker in a topic of its own, in JSON.
func besides(change func(*kgo.Record) *kgo.Record) func(*victim) bool {
	return func(v *victim) bool {
		if v.marks == v.data || v.marks == nil {
			return false
		}
		wrong := false
		inMarkers(lastOf, everywhere, func(r *kgo.Record) *kgo.Record {
			before := string(r.Value)
			r = change(r)
			wrong = wrong || string(r.Value) != before
			return r
		})(v)
		return wrong
	}
}

// heading adds a header to markers.
func heading(key, value string) func(*victim) bool {
	return inMarkers(midway, everywhere, func(r *kgo.Record) *kgo.Record {
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: key, Value: []byte(value)})
		return r
	})
}
