package main

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

// fault is something that is wrong in a topic.
type fault struct {
	name string
	// put puts it in. It returns false if there is no place for it.
	put func(v *victim) bool
	// state and feed are the checks that have to find it: with the bridge's state, and without it by the feed; "" is none.
	state, feed string
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

// inData replaces records of the topic: a record in the middle of a partition, in a segment that is complete, which came
// once, is the last of its key, and no deletion.
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
			if r := rs[i]; r.Key != nil && (len(r.Headers) == 0 || came[header(r, "position")] == 1) && last[string(r.Key)] == i && r.Value != nil && !strings.HasSuffix(header(r, "ce_type"), "Deleted") &&
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
func inMarkers(which func(times []string) string, partitions int, change func(*kgo.Record) *kgo.Record) func(*victim) bool {
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

func faults() []fault {
	year := 365 * 24 * time.Hour
	flip := func(b []byte) []byte { b[len(b)/2] ^= 1; return b }
	inText := func(text []byte) []byte { return append(text[:len(text)-1], text[len(text)-1]^1) }
	return []fault{
		{"a record is missing", inData(func(rs []*kgo.Record, i int) []*kgo.Record { return slices.Delete(rs, i, i+1) }), "", "replay"},
		{"a record is doubled", inData(func(rs []*kgo.Record, i int) []*kgo.Record { return slices.Insert(rs, i+1, rs[i]) }),
			"unique", "unique replay"},
		{"a record comes again at the end", func(v *victim) bool {
			p, i := v.middle()
			if i < 0 {
				return false
			}
			v.data.add(changed(v.data.records[p][i], func(*kgo.Record) {}))
			return true
		}, "unique progress", "unique progress replay"},
		{"an old record comes last", func(v *victim) bool {
			for _, rs := range v.data.records {
				newest := map[string]bool{}
				for _, r := range slices.Backward(rs) {
					switch {
					case r.Key == nil || r.Value == nil:
					case newest[string(r.Key)]:
						v.data.add(changed(r, func(*kgo.Record) {}))
						return true
					}
					newest[string(r.Key)] = r.Key != nil
				}
			}
			return false
		}, "unique progress", "replay"},
		{"a record came after the next of its key", func(v *victim) bool {
			for _, rs := range v.data.records {
				next := map[string]int{}
				for i, r := range slices.Backward(rs) { // from the end: what is behind a gap
					if r.Key == nil {
						clear(next)
						continue
					}
					if j, known := next[string(r.Key)]; known && r.Value != nil && rs[j].Value != nil && header(r, "position") != header(rs[j], "position") {
						rs[i], rs[j] = rs[j], rs[i]
						return true
					}
					next[string(r.Key)] = i
				}
			}
			return false
		}, "order progress", "order progress replay"},
		{"a value differs by a bit", func(v *victim) bool {
			p, i := v.middle()
			if i < 0 || len(v.data.records[p][i].Value) == 0 {
				return false
			}
			v.data.records[p][i] = changed(v.data.records[p][i], func(r *kgo.Record) { r.Value = flip(r.Value) })
			return true
		}, "", "replay"},
		{"a value has a byte more", instead(func(r *kgo.Record) { r.Value = append(r.Value, ' ') }), "", "replay"},
		{"a value is null", instead(func(r *kgo.Record) { r.Value = nil }), "", "replay"},
		{"a key differs", instead(func(r *kgo.Record) { r.Key = inText(r.Key) }), "", "replay"},
		{"a record is on another partition", func(v *victim) bool {
			p, i := v.middle()
			if i < 0 {
				return false
			}
			r := v.data.records[p][i]
			v.data.records[p] = slices.Delete(v.data.records[p], i, i+1)
			q := (p + 1) % 3
			v.data.records[q] = slices.Insert(v.data.records[q], min(1, len(v.data.records[q])), changed(r, func(r *kgo.Record) { r.Partition, r.Offset = q, v.data.from[q] }))
			return true
		}, "partition", "partition"},
		{"a header is wrong", inData(func(rs []*kgo.Record, i int) []*kgo.Record {
			rs[i] = changed(rs[i], func(*kgo.Record) {})
			if !set(rs[i], "ce_source", flip) {
				return nil
			}
			return rs
		}), "", "replay"},
		{"an id is made up", inData(func(rs []*kgo.Record, i int) []*kgo.Record {
			rs[i] = changed(rs[i], func(*kgo.Record) {})
			if !set(rs[i], "ce_id", func([]byte) []byte { return []byte("00000000-0000-0000-0000-000000000000") }) {
				return nil
			}
			return rs
		}), "", "replay"},
		{"a header is missing", inData(func(rs []*kgo.Record, i int) []*kgo.Record {
			if header(rs[i], "position") == "" {
				return nil
			}
			rs[i] = changed(rs[i], func(r *kgo.Record) {
				r.Headers = slices.DeleteFunc(r.Headers, func(h kgo.RecordHeader) bool { return h.Key == "position" })
			})
			return rs
		}), "progress barrier", "progress barrier replay"},
		{"a timestamp is wrong", instead(func(r *kgo.Record) { r.Timestamp = r.Timestamp.Add(year) }), "time", "time replay"},
		{"a record is somebody else's", func(v *victim) bool {
			v.data.add(&kgo.Record{Partition: 1, Key: []byte("foreign"), Value: []byte(`{"hello": "world"}`), Timestamp: time.Now()})
			return true
		}, "", "replay"},
		{"a record is below its marker", func(v *victim) bool {
			p, i := v.middle()
			if i < 0 || v.marks == nil {
				return false
			}
			r := v.data.records[p][i]
			v.data.records[p] = slices.Delete(v.data.records[p], i, i+1)
			v.data.add(changed(r, func(*kgo.Record) {}))
			return true
		}, "resolved", "resolved"},
		{"a marker is missing on a partition", inMarkers(midway, 1, gone), "resolved", "resolved"},
		{"a marker is missing everywhere", inMarkers(midway, everywhere, gone), "", "resolved"},
		{"the last marker is missing on a partition", inMarkers(lastOf, 1, gone), "resolved", "resolved"},
		{"the last marker is missing everywhere", inMarkers(lastOf, everywhere, gone), "resolved", "resolved"},
		{"all markers but the first are missing", func(v *victim) bool {
			if v.marks == nil {
				return false
			}
			for _, at := range v.times[1:] {
				inMarkers(func([]string) string { return at }, everywhere, gone)(v)
			}
			return true
		}, "resolved", "resolved"},
		{"the last marker says 2099", inMarkers(lastOf, everywhere, saying(year2099)), "resolved", "resolved"},
		{"the last marker says 2099 on a partition", inMarkers(lastOf, 1, saying(year2099)), "resolved", "resolved"},
		{"a marker of 2099 comes last", func(v *victim) bool {
			if v.marks == nil {
				return false
			}
			for _, rs := range v.marks.records {
				last := slices.IndexFunc(rs, func(r *kgo.Record) bool { return r.Key == nil && bytes.Contains(r.Value, []byte(lastOf(v.times))) })
				v.marks.add(saying(year2099)(changed(rs[last], func(*kgo.Record) {})))
			}
			return true
		}, "resolved", "resolved"},
		{"a marker says too much", inMarkers(midway, everywhere, saying(later(time.Minute))), "", "resolved"},
		{"a marker says too little", inMarkers(midway, everywhere, saying(later(-time.Minute))), "", "resolved"},
		{"a marker falls", inMarkers(midway, everywhere, saying(later(-year))), "resolved", "resolved"},
		{"a marker's value is null", inMarkers(midway, everywhere, func(r *kgo.Record) *kgo.Record { r.Value = nil; return r }), "resolved", "resolved"},
		{"a marker's value is garbage", inMarkers(midway, everywhere, func(r *kgo.Record) *kgo.Record {
			r.Value = []byte(`{"garbage":1}`)
			return r
		}), "resolved", "resolved"},
		{"a marker's header is wrong", func(v *victim) bool {
			wrong := false
			inMarkers(midway, everywhere, func(r *kgo.Record) *kgo.Record {
				wrong = set(r, "resolved", func([]byte) []byte { return []byte(lastOf(v.times)) })
				return r
			})(v)
			return wrong
		}, "resolved", "resolved"},
		{"a marker's timestamp is wrong", inMarkers(midway, everywhere, func(r *kgo.Record) *kgo.Record {
			r.Timestamp = r.Timestamp.Add(year)
			return r
		}), "resolved", "resolved"},
		{"a marker speaks of another partition", besides(speakingOf(func(p int32) int32 { return (p + 1) % 3 }, same)), "resolved", "resolved"},
		{"a marker speaks of what is not there yet", besides(speakingOf(sameOf, func(int64) int64 { return 1 << 40 })), "resolved", "resolved"},
		{"a marker speaks of too little", besides(speakingOf(sameOf, func(int64) int64 { return 0 })), "resolved", "resolved"},
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
