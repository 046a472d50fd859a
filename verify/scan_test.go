package verify

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

const (
	scanUpdated = int64(1589996400000000000) // up to where the feed was resolved when the scan began
	scanServed  = int64(1590000000000)       // when the first page was listed, in ms
)

// listedRow is a blob's row of a scan.
func listedRow(scan string, blob int, updated, millis int64) Record {
	r := data(0, blob, 0)
	r.Millis = millis
	r.Headers = []Header{{"updated", fmt.Appendf(nil, "%d.0000000000", updated)}, {"scan", []byte(scan)}}
	return r
}

// initial returns the topic after an initial scan with a row of each blob.
func initial() (rs []Record) {
	for blob := range 8 {
		rs = append(rs, listedRow("s1", blob, scanUpdated, scanServed+int64(blob)))
	}
	return append(rs, topic()...)
}

// listedLater is a row of a re-scan: behind all segments, with the time of its page.
func listedLater(blob int) Record {
	return listedRow("s2", blob, 1590012000123000000, 1590012000123)
}

// ended adds the marker that says that a scan is over.
func ended(rs []Record, scan string) []Record {
	for p := range int32(partitions) {
		m := mark(p, 5)
		m.Headers = append(m.Headers, Header{"scan", []byte(scan)})
		rs = append(rs, m)
	}
	return rs
}

// Rows of scans are no events for the other validators, and each fault in them is found.
func TestScan(t *testing.T) {
	for name, c := range map[string]struct {
		fault func(rs []Record) []Record
		found string // validators
		says  string // one of the failures
	}{
		"none": {func(rs []Record) []Record { return rs }, "", ""},
		"a row twice": {func(rs []Record) []Record { return slices.Insert(rs, 3, rs[2]) },
			"unique", "is repeated; first on partition"},
		"a row, and a deletion by the sweep of the same scan": {func(rs []Record) []Record {
			row, gone := listedLater(3), listedLater(3)
			row.Value = []byte(`{"after": {"path": "photos/3.jpg"}, "updated": "1590012000123000000.0000000000"}`)
			gone.Value = []byte(`{"after": null, "updated": "1590012000123000000.0000000000"}`)
			return append(rs, row, gone)
		}, "", ""},
		"the deletion of a sweep twice": {func(rs []Record) []Record {
			gone := listedLater(3)
			gone.Value = []byte(`{"after": null, "updated": "1590012000123000000.0000000000"}`)
			return append(rs, gone, gone)
		}, "unique", "is repeated; first on partition"},
		"a deletion and its tombstone": {func(rs []Record) []Record {
			gone := listedLater(3)
			stone := gone
			stone.Value = nil
			return append(rs, gone, stone)
		}, "", ""},
		"a row behind an event": {func(rs []Record) []Record {
			row := rs[0]
			i := find(rs, func(r *Record) bool { return r.Partition == row.Partition && !r.Scanned() })
			return slices.Delete(slices.Insert(rs, i+1, row), 0, 1)
		}, "scan", "comes after an event or a marker"},
		"a row behind a marker": {func(rs []Record) []Record {
			row := listedRow("s1", 77, scanUpdated, scanServed)
			return append(rs, row)
		}, "resolved scan", "comes after the marker"},
		"another updated": {func(rs []Record) []Record {
			set(&rs[5], "updated", fmt.Sprintf("%d.0000000000", scanUpdated+1))
			return rs
		}, "scan", "all rows of an initial scan have the same"},
		"no updated": {func(rs []Record) []Record { drop(&rs[5], "updated"); rs[5].Value = nil; return rs },
			"resolved", "has no time"},
		"a marker before the end of the listing": {func(rs []Record) []Record {
			rs[7].Millis = 1590003600000
			return rs
		}, "scan", "the marker 1590003599999999999.0000000000 is below 1590003600000000000.0000000000, the time " +
			"of the last page"},
		"a row of an unknown scan": {func(rs []Record) []Record {
			return append(rs, listedRow("s9", 3, 1590012000123000000, 1590012000123))
		}, "scan", "the first of 1 rows of scan s9, which the state does not name"},
		"a row on another partition": {func(rs []Record) []Record {
			rs[0].Partition = (rs[0].Partition + 1) % partitions
			return rs
		}, "partition", "belongs to partition"},
		"a re-scan": {func(rs []Record) []Record { return append(rs, listedLater(1), listedLater(2)) }, "", ""},
		"a re-scan before the next events": {func(rs []Record) []Record {
			return slices.Insert(rs, 30, listedLater(1), listedLater(2))
		}, "", ""},
		"a re-scan below a marker": {func(rs []Record) []Record {
			return append(rs, listedRow("s2", 3, 1590001000123000000, 1590001000123))
		}, "resolved", "comes after the marker"},
		"a scan that only a marker names": {func(rs []Record) []Record {
			return append(ended(rs, "s3"), listedRow("s3", 3, 1590092000123000000, 1590092000123))
		}, "scan", "scan s3, which the state does not name"},
		"more rows than were written": {func(rs []Record) []Record {
			return append(rs, listedLater(1), listedLater(2), listedLater(3), listedLater(4))
		}, "scan", "rows of scans, and by the state "},
		"the broker's timestamps": {func(rs []Record) []Record {
			rs = append(rs, listedLater(1))
			for i := range rs {
				rs[i].Millis = 0
			}
			return rs
		}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			scan := NewScan()
			scan.Initial("s1", fmt.Sprintf("%d.0000000000", scanServed*1e6))
			scan.Known(11, "s1", "s2") // a row and a deletion count as two
			g := All(append(validators(), scan, NewTime(), replayed(&Replay{}, topic()))...)
			for _, r := range c.fault(initial()) {
				g.Note(r)
			}
			found := map[string]bool{}
			for _, name := range broken(g) {
				found[name] = true
			}
			want := map[string]bool{}
			for _, v := range strings.Fields(c.found) {
				want[v] = true
			}
			if all := text(g.Failures()); fmt.Sprint(found) != fmt.Sprint(want) || !strings.Contains(all, c.says) {
				t.Errorf("found by %v, want %v and %q\n%s", found, want, c.says, all)
			}
		})
	}
}

// Without a state, the timestamps of rows say which scan is the initial one, and when it got its last page.
func TestScanWithoutState(t *testing.T) {
	for name, c := range map[string]struct {
		fault func(rs []Record) []Record
		says  string
	}{
		"none":      {func(rs []Record) []Record { return rs }, ""},
		"a re-scan": {func(rs []Record) []Record { return append(rs, listedLater(1)) }, ""},
		"another updated": {func(rs []Record) []Record { set(&rs[5], "updated", "1.0000000000"); return rs },
			"have the same"},
		"behind an event": {func(rs []Record) []Record {
			return append(rs[1:], rs[0])
		}, "comes after an event or a marker"},
		"a marker too soon": {func(rs []Record) []Record { rs[7].Millis = 1590003600000; return rs },
			"is below 1590003600"},
		"after a seek": {func(rs []Record) []Record {
			for p := range int32(partitions) {
				m := mark(p, 2)
				m.Headers = append(m.Headers, Header{"seek", []byte("- earliest")})
				rs = append(rs, m)
			}
			return append(rs, rs[0])
		}, ""},
	} {
		v := NewScan()
		for _, r := range c.fault(initial()) {
			v.Note(r)
		}
		if all := text(v.Failures()); (all == "") != (c.says == "") || !strings.Contains(all, c.says) {
			t.Errorf("%s: want %q: %s", name, c.says, all)
		}
		if rows := v.Rows(); !rows[0].Initial || rows[0].Rows < 8 || len(rows) > 1 && rows[1].Initial {
			t.Errorf("%s: %+v", name, rows)
		}
	}
}

// The state knows the end of the listing also if timestamps do not.
func TestScanByState(t *testing.T) {
	v := NewScan()
	v.Initial("s1", "1590003600000000000.0000000000")
	for _, r := range topic() {
		v.Note(r)
	}
	v.Note(listedRow("s1", 1, scanUpdated, 0))
	if all := text(v.Failures()); !strings.Contains(all, "is below 1590003600") ||
		!strings.Contains(all, "comes after") {
		t.Error(all)
	}
}

// In a compacted topic a row may be all that is left of a key; events behind it are required.
func TestReplayOfScan(t *testing.T) {
	rs := topic()
	last := find(rs, func(r *Record) bool {
		return r.Key != nil && strings.Contains(string(r.Header("position")), "/0200/")
	})
	v := replayed(&Replay{Latest: true}, rs)
	for _, r := range rs {
		if string(r.Key) != string(rs[last].Key) {
			v.Note(r)
		}
	}
	if f := v.Failures(); len(f) == 0 {
		t.Fatal("a lost key is not found")
	}
	row := listedLater(0)
	row.Key = rs[last].Key
	v.Note(row)
	if f := v.Failures(); len(f) > 0 {
		t.Error(text(f))
	}
	v.Note(rs[last])
	if f := v.Failures(); len(f) == 0 {
		t.Error("an event that is missing behind a row is not found")
	}
}

// With at-least-once, a repeated row is not the first of its scan.
func TestSeenRows(t *testing.T) {
	s := NewSeen()
	for i, c := range []struct {
		r     Record
		first bool
	}{
		{listedRow("s1", 1, scanUpdated, scanServed), true}, {listedRow("s1", 2, scanUpdated, scanServed), true},
		{listedRow("s1", 1, scanUpdated, scanServed), false}, {listedLater(1), true},
	} {
		if got := s.First(&c.r); got != c.first {
			t.Errorf("%d: %v", i, got)
		}
	}
}
