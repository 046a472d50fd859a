package verify

import (
	"slices"
	"strings"
	"testing"
)

// soughtTopic is a right topic after whose three segments the bridge was moved back to the second, and then carried a
// fourth, too. At is where the second round begins.
func soughtTopic() (rs []Record, at int) {
	rs = topic()
	again := slices.DeleteFunc(slices.Clone(rs[43:]), isMarker) // segments 1 and 2
	for p := range int32(partitions) {
		m := mark(p, 2)
		m.Headers = append(m.Headers, Header{"seek", []byte("2020/05/27/0200 2020/05/27/0100")})
		rs = append(rs, m)
	}
	at = len(rs)
	rs = append(rs, again...)
	for p := range int32(partitions) {
		rs = append(rs, mark(p, 2)) // markers do not go back
	}
	for i := range 40 {
		rs = append(rs, data(120+i, i%8, 3))
	}
	for p := range int32(partitions) {
		rs = append(rs, mark(p, 3))
	}
	next := map[int32]int64{}
	for i := range rs {
		rs[i].Offset = next[rs[i].Partition]
		next[rs[i].Partition]++
	}
	return rs, at
}

func isMarker(r Record) bool { return r.Key == nil }

// What a seek brings again is right, and counted; but behind it all is judged as before.
func TestSeek(t *testing.T) {
	right, at := soughtTopic()
	last := len(right) - partitions // where the last markers begin
	for name, c := range map[string]struct {
		fault func(rs []Record) []Record
		found string
	}{
		"none": {func(rs []Record) []Record { return rs }, ""},
		"nothing tells of the seek": {func(rs []Record) []Record {
			for i := range rs[:at] {
				drop(&rs[i], "seek")
			}
			return rs
		}, "unique order sequence resolved replay"},
		"one partition is not told": {func(rs []Record) []Record { drop(&rs[at-1], "seek"); return rs },
			"unique order sequence resolved replay"},
		"an event three times": {func(rs []Record) []Record {
			return slices.Insert(rs, at+1, rs[at])
		}, "unique order replay"},
		"two events of a blob swapped": {func(rs []Record) []Record {
			rs[at], rs[at+8] = rs[at+8], rs[at]
			return rs
		}, "order sequence replay"},
		"a segment before another": {func(rs []Record) []Record {
			return slices.Concat(rs[:at], rs[at+40:at+80], rs[at:at+40], rs[at+80:])
		}, "order sequence replay"},
		"after the next marker": {func(rs []Record) []Record {
			return append(rs, data(200, 1, 3))
		}, "resolved replay"},
		"an ordinary marker of a partition names one, too": {func(rs []Record) []Record {
			i := slices.IndexFunc(rs[43:], isMarker) + 43
			rs[i].Headers = append(slices.Clone(rs[i].Headers), Header{"seek", []byte("2020/05/27/0100 2020/05/27/0000")})
			return rs
		}, "resolved"},
		"a repeated marker of a partition names one, too": {func(rs []Record) []Record {
			i := slices.IndexFunc(rs[at:], isMarker) + at
			rs[i].Headers = append(slices.Clone(rs[i].Headers), Header{"seek", []byte("2020/05/27/0200 2020/05/27/0000")})
			return rs
		}, "resolved"},
		"the last marker of a partition comes twice, and names one": {func(rs []Record) []Record {
			r := rs[len(rs)-1]
			r.Headers = append(slices.Clone(r.Headers), Header{"seek", []byte("2020/05/27/0300 2020/05/27/0000")})
			return append(rs, r)
		}, "resolved"},
		"a marker of a partition names lost history": {func(rs []Record) []Record {
			i := slices.IndexFunc(rs[43:], isMarker) + 43
			rs[i].Headers = append(slices.Clone(rs[i].Headers), Header{"gap", []byte("2020/05/27/0100 2020/05/27/0200")})
			return rs
		}, "resolved"},
		"a marker lacks the header resolved": {func(rs []Record) []Record {
			drop(&rs[at-1], "resolved")
			return rs
		}, "resolved"},
		"a seek from before what came": {func(rs []Record) []Record {
			for i := range rs[:at] {
				if rs[i].seeks() {
					drop(&rs[i], "seek")
					rs[i].Headers = append(rs[i].Headers, Header{"seek", []byte("2020/05/27/0000 2020/05/27/0100")})
				}
			}
			return rs
		}, "order"},
		"an event from before the place": {func(rs []Record) []Record {
			return slices.Insert(rs, at, data(0, 0, 0), data(1, 1, 0), data(2, 2, 0))
		}, "order"},
		"another value": {func(rs []Record) []Record { rs[at].Value = []byte("{ }"); return rs },
			"replay"},
		"lost before, and come since": {func(rs []Record) []Record { return slices.Delete(rs, 43, 44) }, ""},
		"lost": {func(rs []Record) []Record {
			return slices.Delete(rs, last-1, last)
		}, "replay"},
	} {
		t.Run(name, func(t *testing.T) {
			replay := &Replay{}
			for n := range 160 {
				replay.Expect(data(n, n%40%8, n/40), true)
			}
			unique := NewUnique()
			order := NewOrder()
			order.Exact = true
			markers := NewResolved(partitions)
			markers.Headers = true
			all := All(unique, order, NewSequence(), markers, replay)
			for _, r := range c.fault(slices.Clone(right)) {
				all.Note(r)
			}
			if have := strings.Join(unproved(all), " "); have != c.found {
				t.Errorf("found by %q, want %q: %v", have, c.found, all.Failures())
			}
			if name == "none" && unique.Again != 80 {
				t.Errorf("%d events came again", unique.Again)
			}
		})
	}
}

// A partition that was added after a seek has the numbers of later seeks that the others have: what the second one
// brings again is right there, and what is repeated behind it is not.
func TestSeekOfAnAddedPartition(t *testing.T) {
	sought := func(p int32, place string) Record {
		m := mark(p, 1)
		m.Headers = append(m.Headers, Header{"seek", []byte(place)})
		return m
	}
	moved := data(7, 0, 1)
	before, after := moved, moved
	before.Partition, after.Partition = 0, 1
	for name, c := range map[string]struct {
		records []Record
		again   int64
		fails   int
	}{
		"behind the second": {[]Record{sought(0, "a"), before, sought(0, "b"), sought(1, "b"), after}, 1, 0},
		"the same place":    {[]Record{sought(0, "b"), before, sought(1, "b"), after}, 0, 1},
		"twice":             {[]Record{sought(0, "a"), sought(0, "b"), before, sought(1, "b"), after}, 0, 1},
		"twice, read first": {[]Record{sought(1, "b"), after, sought(0, "a"), sought(0, "b"), before}, 0, 1},
	} {
		v := NewUnique()
		v.Moves = true
		for _, r := range c.records {
			v.Note(r)
		}
		if fails := len(v.Failures()); fails != c.fails || v.Again != c.again {
			t.Errorf("%s: %d failures, %d again", name, fails, v.Again)
		}
	}
}
