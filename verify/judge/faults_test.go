package judge

import (
	"bytes"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// fault is something that is wrong in a topic.
type fault struct {
	name string
	// put puts it in. It returns false if there is no place for it.
	put func(v *victim) bool
	// state and feed are the checks that have to find it: with the bridge's state, and without it by the feed; "" is
	// none.
	state, feed string
}

func faults() []fault {
	year := 365 * 24 * time.Hour
	flip := func(b []byte) []byte { b[len(b)/2] ^= 1; return b }
	inText := func(text []byte) []byte { return append(text[:len(text)-1], text[len(text)-1]^1) }
	return []fault{
		{"a record is missing", inData(func(rs []*kgo.Record, i int) []*kgo.Record {
			return slices.Delete(rs, i, i+1)
		}), "", "replay"},
		{"a record is doubled", inData(func(rs []*kgo.Record, i int) []*kgo.Record {
			return slices.Insert(rs, i+1, rs[i])
		}), "unique", "unique replay"},
		{"a record is repeated at the end", func(v *victim) bool {
			p, i := v.middle()
			if i < 0 {
				return false
			}
			v.data.add(changed(v.data.records[p][i], func(*kgo.Record) {}))
			return true
		}, "unique order", "unique order replay"},
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
		}, "unique order", "replay"},
		{"a record came after the next of its key", func(v *victim) bool {
			for _, rs := range v.data.records {
				next := map[string]int{}
				for i, r := range slices.Backward(rs) { // from the end: what is behind a gap
					if r.Key == nil {
						clear(next)
						continue
					}
					j, known := next[string(r.Key)]
					if known && r.Value != nil && rs[j].Value != nil &&
						header(r, "position") != header(rs[j], "position") {
						rs[i], rs[j] = rs[j], rs[i]
						return true
					}
					next[string(r.Key)] = i
				}
			}
			return false
		}, "order", "order replay"},
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
			r = changed(r, func(r *kgo.Record) { r.Partition, r.Offset = q, v.data.from[q] })
			v.data.records[q] = slices.Insert(v.data.records[q], min(1, len(v.data.records[q])), r)
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
		}), "order", "order replay"},
		{"a timestamp is wrong", instead(func(r *kgo.Record) { r.Timestamp = r.Timestamp.Add(year) }), "time",
			"time replay"},
		{"a record is somebody else's", func(v *victim) bool {
			r := &kgo.Record{Key: []byte("foreign"), Value: []byte(`{"hello": "world"}`), Timestamp: time.Now()}
			v.data.add(r)
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
				last := slices.IndexFunc(rs, func(r *kgo.Record) bool {
					return r.Key == nil && bytes.Contains(r.Value, []byte(lastOf(v.times)))
				})
				v.marks.add(saying(year2099)(changed(rs[last], func(*kgo.Record) {})))
			}
			return true
		}, "resolved", "resolved"},
		{"a marker says too much", inMarkers(midway, everywhere, saying(later(time.Minute))), "", "resolved"},
		{"a marker says too little", inMarkers(midway, everywhere, saying(later(-time.Minute))), "", "resolved"},
		{"a marker falls", inMarkers(midway, everywhere, saying(later(-year))), "resolved", "resolved"},
		{"a marker's value is null", inMarkers(midway, everywhere, func(r *kgo.Record) *kgo.Record {
			r.Value = nil
			return r
		}), "resolved", "resolved"},
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
		{"a marker makes up a seek", heading("seek", "- earliest"), "resolved", ""},
		{"a marker makes up lost history", heading("gap", "2026/01/01/0000 2026/01/01/0100"), "resolved", ""},
		{"the newest of a key does not come again", func(v *victim) bool {
			for p, rs := range v.data.records {
				since := map[string]int{} // that came again, by key
				came, again := map[string]bool{}, false
				for _, r := range rs {
					id := header(r, "position") + string(r.Key) + string(r.Value)
					if again = again || r.Key != nil && came[id]; again && r.Key != nil {
						since[string(r.Key)]++
					}
					came[id] = true
				}
				for i, r := range slices.Backward(rs) {
					if since[string(r.Key)] > 1 && v.came(r) {
						v.data.records[p] = slices.Delete(rs, i, i+1)
						return true
					}
					delete(since, string(r.Key))
				}
			}
			return false
		}, "", "replay"},
		{"a marker's header is missing", func(v *victim) bool {
			missing := false
			inMarkers(midway, 1, func(r *kgo.Record) *kgo.Record {
				missing = header(r, "resolved") != ""
				r.Headers = slices.DeleteFunc(r.Headers, func(h kgo.RecordHeader) bool { return h.Key == "resolved" })
				return r
			})(v)
			return missing
		}, "resolved", "resolved"},
		{"a marker names no place", heading("seek", "rubbish"), "resolved", "resolved"},
		{"a marker names one place", heading("gap", "2026/01/01/0000"), "resolved", "resolved"},
		{"a marker is of another feed", heading("feed", "other.blob.core.windows.net"), "resolved", ""},
		{"a value has an unknown schema", inData(func(rs []*kgo.Record, i int) []*kgo.Record {
			if len(rs[i].Value) < 5 || rs[i].Value[0] != 0 {
				return nil
			}
			rs[i] = changed(rs[i], func(r *kgo.Record) { r.Value = append([]byte{0, 0, 0, 7, 7}, r.Value[5:]...) })
			return rs
		}), "schema", "schema replay"},
		{"a marker speaks of another partition",
			besides(speakingOf(func(p int32) int32 { return (p + 1) % 3 }, same)), "resolved", "resolved"},
		{"a marker speaks of what is not there yet",
			besides(speakingOf(sameOf, func(int64) int64 { return 1 << 40 })), "resolved", "resolved"},
		{"a marker speaks of too little",
			besides(speakingOf(sameOf, func(int64) int64 { return 0 })), "resolved", "resolved"},
	}
}
