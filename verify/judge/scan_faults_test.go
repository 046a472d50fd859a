package judge

import (
	"bytes"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/envelope"
)

// scanFaults are those in the rows of an initial scan.
func scanFaults() []fault {
	return []fault{
		{"a row of a scan is doubled", inRows(func(rs []*kgo.Record) []*kgo.Record {
			return slices.Insert(rs, 1, rs[0])
		}), "unique", "unique"},
		{"a row of a scan comes after an event", inRows(func(rs []*kgo.Record) []*kgo.Record {
			return append(rs[1:len(rs):len(rs)], rs[0])
		}), "scan", "scan"},
		{"a row of a scan has another time", inRows(func(rs []*kgo.Record) []*kgo.Record {
			rs[1] = changed(rs[1], func(r *kgo.Record) { retime(r, rowTime(r)+1) })
			return rs
		}), "scan", "scan"},
		{"a row of a scan is made up", inRows(func(rs []*kgo.Record) []*kgo.Record {
			return slices.Insert(rs, 1, changed(rs[0], func(r *kgo.Record) { r.Key[len(r.Key)/2] ^= 1 }))
		}), "scan", ""},
		{"a row is of a scan that nobody knows", inRows(func(rs []*kgo.Record) []*kgo.Record {
			at := year2099(envelope.Timestamp{}).Wall // of its page, as a later scan has it
			return append(rs, changed(rs[0], func(r *kgo.Record) {
				retime(r, at)
				r.Timestamp = time.Unix(0, at)
				set(r, "scan", func([]byte) []byte { return []byte("unknown") })
			}))
		}), "scan", ""},
		{"a marker is below the end of the listing", func(v *victim) bool {
			if !inRows(func(rs []*kgo.Record) []*kgo.Record { return rs })(v) || v.marks == nil {
				return false
			}
			for p, rs := range v.marks.records {
				i := slices.IndexFunc(rs, func(r *kgo.Record) bool { return r.Key == nil })
				early := saying(later(-80 * time.Minute))(changed(rs[i], func(*kgo.Record) {}))
				v.marks.records[p] = slices.Insert(rs, i, early)
			}
			return true
		}, "scan", "scan"},
	}
}

// inRows changes the records of each partition that begins with rows of a scan.
func inRows(change func(rs []*kgo.Record) []*kgo.Record) func(*victim) bool {
	return func(v *victim) bool {
		found := false
		for p, rs := range v.data.records {
			if len(rs) > 2 && header(rs[1], "scan") != "" && rs[1].Key != nil {
				v.data.records[p], found = change(rs), true
			}
		}
		return found
	}
}

// rowTime returns the updated of a row of an initial scan, which is in its value.
func rowTime(r *kgo.Record) (ns int64) {
	for at := range len(r.Value) - 29 {
		if ts, err := envelope.ParseTimestamp(string(r.Value[at : at+30])); err == nil {
			return ts.Wall
		}
	}
	return 0
}

// retime replaces the updated of a row, in its value and its header.
func retime(r *kgo.Record, ns int64) {
	was, is := envelope.Timestamp{Wall: rowTime(r)}.String(), envelope.Timestamp{Wall: ns}.String()
	swap := func(text []byte) []byte { return bytes.ReplaceAll(text, []byte(was), []byte(is)) }
	r.Value = swap(r.Value)
	set(r, "updated", swap)
}
