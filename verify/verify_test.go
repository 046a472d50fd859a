package verify

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"testing"
)

const partitions = 3

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

func mark(partition int32, segment int) Record {
	text := fmt.Appendf(nil, "%d.0000000000", 1590000000000000000+int64(segment+1)*3600e9-1)
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

const events = 3 * 40

func validators() []Validator {
	complete := NewComplete()
	for n := range events {
		complete.Expect(eventID(n))
	}
	return []Validator{
		NewUnique(),
		complete,
		NewOrder(),
		NewSequence(),
		NewPartition(partitions, partitionOf),
		NewPartition(partitions, nil),
		NewProgress(),
		NewBarrier(),
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

// Each fault is found by the validators that are there for it, and by no other.
func TestFaults(t *testing.T) {
	for name, c := range map[string]struct {
		fault func(rs []Record) []Record
		found string // validators
		says  string // one of the failures
	}{
		"none": {func(rs []Record) []Record { return rs }, "", ""},
		"an event twice": {func(rs []Record) []Record { return slices.Insert(rs, 5, rs[4]) },
			"unique order progress", "event 00007bbc-901e-007a-4eb5-cc621f000004 is repeated; first on partition"},
		"a deletion and its tombstone": {func(rs []Record) []Record {
			stone := rs[4]
			stone.Value = nil
			return slices.Insert(rs, 5, stone)
		}, "", ""},
		"a tombstone twice": {func(rs []Record) []Record {
			stone := rs[4]
			stone.Value = nil
			return slices.Insert(rs, 5, stone, stone)
		}, "unique order progress", "is repeated"},
		"a tombstone before its value": {func(rs []Record) []Record {
			stone := rs[4]
			stone.Value = nil
			return slices.Insert(rs, 4, stone)
		}, "unique order progress", "is repeated"},
		"a transaction twice": {func(rs []Record) []Record { return slices.Insert(rs, 16, rs[:16]...) },
			"unique order sequence progress", ""},
		"an event lost": {func(rs []Record) []Record { return slices.Delete(rs, 7, 8) },
			"complete", "1 of 120 expected events are missing, among them 0000d889-901e-007a-4eb5-cc621f000007"},
		"an event too much": {func(rs []Record) []Record { set(&rs[9], "ce_id", "x"); return rs },
			"complete", `event "x" was not expected`},
		"no id": {func(rs []Record) []Record { drop(&rs[9], "ce_id"); return rs },
			"unique complete", "no header ce_id"},
		"two events of a blob swapped": {func(rs []Record) []Record { rs[8], rs[16] = rs[16], rs[8]; return rs },
			"order sequence progress", ""},
		"an event in another shard": {func(rs []Record) []Record { set(&rs[8], "position", "2020/05/27/0000/09/00000/1/1"); return rs },
			"order", "after one of shard 00"},
		"an earlier chunk": {func(rs []Record) []Record { set(&rs[32], "position", "2020/05/27/0000/00/00000/99000/1"); return rs },
			"order progress", "comes after the one at 1/"},
		"no position": {func(rs []Record) []Record { drop(&rs[8], "position"); return rs },
			"order barrier progress", `header position is ""`},
		"a sequencer falls": {func(rs []Record) []Record { set(&rs[8], "sequence", "0"); set(&rs[0], "sequence", "1"); return rs },
			"sequence", "sequence 0 comes after"},
		"no sequencer": {func(rs []Record) []Record { drop(&rs[8], "sequence"); return rs },
			"sequence", ""},
		"an odd sequencer": {func(rs []Record) []Record { set(&rs[8], "sequence", "xyz"); return rs },
			"sequence", ""},
		"the sequencer of a scanned row": {func(rs []Record) []Record { set(&rs[8], "sequence", ""); return rs }, "", ""},
		"sequencers in another case, less padded": {func(rs []Record) []Record {
			for i := range rs {
				text := string(rs[i].Header("sequence"))
				if i%2 == 0 {
					text = strings.ToUpper(strings.TrimLeft(text, "0"))
				}
				set(&rs[i], "sequence", text)
			}
			return rs
		}, "", ""},
		"a key moves": {func(rs []Record) []Record { rs[20].Partition = (rs[20].Partition + 1) % partitions; return rs },
			"order partition", "belongs to partition"},
		"an old segment's event late": {func(rs []Record) []Record {
			// Of a blob of its own, so that only the barrier and the marker are hurt.
			late := data(3, 3, 0)
			i := find(rs, func(r *Record) bool {
				return r.Key != nil && r.Partition == late.Partition && strings.Contains(string(r.Header("position")), "/0100/")
			})
			late.Key = []byte("other")
			rs = slices.Delete(rs, 3, 4)
			return slices.Insert(rs, i, late)
		}, "barrier partition progress resolved", ""},
		"data before its time": {func(rs []Record) []Record { set(&rs[60], "updated", "1590003599999999999.0000000000"); return rs },
			"resolved", "comes after the marker"},
		"no updated": {func(rs []Record) []Record { drop(&rs[60], "updated"); return rs },
			"resolved", `header updated is ""`},
		"a marker falls": {func(rs []Record) []Record { return append(rs, mark(1, 1)) },
			"resolved", "the marker 1590007199999999999.0000000000 comes after 1590010799999999999.0000000000"},
		"a marker again": {func(rs []Record) []Record { return append(rs, mark(1, 2)) }, "", ""},
		"a marker is missing": {func(rs []Record) []Record { i := find(rs, isMark); return slices.Delete(rs, i, i+1) },
			"resolved", "changes, partition 0 lacks 1 of 3 markers; the first is 1590003599999999999.0000000000"},
		"a partition without markers": {func(rs []Record) []Record {
			return slices.DeleteFunc(rs, func(r Record) bool { return r.Key == nil && r.Partition == 2 })
		}, "resolved", "partition 2 lacks 3 of 3"},
		"a marker on one partition only": {func(rs []Record) []Record { return append(rs, mark(1, 7)) },
			"resolved", "partition 0 lacks 1 of 4"},
		"a partition too many": {func(rs []Record) []Record { return append(rs, mark(3, 0)) },
			"resolved", "has a partition 3"},
		"an odd marker": {func(rs []Record) []Record { return append(rs, Record{Topic: "changes", Value: []byte("{}")}) },
			"resolved", "is no marker"},
		"header and value differ": {func(rs []Record) []Record {
			m := mark(0, 5)
			m.Value = mark(0, 6).Value
			return append(rs, m)
		}, "resolved", "the marker's header says"},
		"markers by header only": {func(rs []Record) []Record {
			for i := range rs {
				if rs[i].Key == nil {
					rs[i].Value = []byte("\x00avro")
				}
			}
			return rs
		}, "", ""},
		"markers by value only": {func(rs []Record) []Record {
			for i := range rs {
				if rs[i].Key == nil {
					rs[i].Headers = nil
				}
			}
			return rs
		}, "", ""},
		"two topics": {func(rs []Record) []Record {
			for i := range rs { // what is right in one topic each
				if rs[i].Key == nil {
					rs = append(rs, rs[i])
					rs[len(rs)-1].Topic = "other"
				}
			}
			return rs
		}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := All(validators()...)
			for _, r := range c.fault(topic()) {
				g.Note(r)
			}
			found, all := map[string]bool{}, ""
			for _, c := range g.Summary().Checks {
				if len(c.Failures) > 0 {
					found[c.Name] = true
				}
			}
			for _, f := range g.Failures() {
				all += f.String() + "\n"
			}
			want := map[string]bool{}
			for _, v := range strings.Fields(c.found) {
				want[v] = true
			}
			if fmt.Sprint(found) != fmt.Sprint(want) || !strings.Contains(all, c.says) {
				t.Errorf("found by %v, want %v and %q\n%s", found, want, c.says, all)
			}
			if g.Summary().OK() != (c.found == "") {
				t.Errorf("summary: %v", g.Summary())
			}
		})
	}
}

// A validator of a topic where everything is wrong keeps little, and counts the rest.
func TestFailuresAreBounded(t *testing.T) {
	u := NewUnique()
	for range 1001 {
		u.Note(data(1, 1, 0))
	}
	f := u.Failures()
	if len(f) != kept+1 || f[kept].String() != "and 980 more" {
		t.Errorf("%d failures, at the end %v", len(f), f[len(f)-1])
	}
	v := NewResolved(100)
	for i := range 30 {
		v.Note(mark(0, i))
	}
	for range 2 { // asking changes nothing
		if f := v.Failures(); len(f) != kept+1 || f[kept].String() != "and 79 more" {
			t.Errorf("%d failures, at the end %v", len(f), f[len(f)-1])
		}
	}
	if v.Markers() != 30 {
		t.Errorf("%d markers", v.Markers())
	}
}

// What is missing stands first, however much else is wrong, and what has come since is no longer missing.
func TestCompleteLeft(t *testing.T) {
	c := NewComplete()
	for _, id := range []string{eventID(1), eventID(1), "not a UUID", strings.ToUpper(eventID(1000000))} {
		c.Expect(id)
	}
	if c.Left() != 3 {
		t.Errorf("%d are left", c.Left())
	}
	for n := range 50 {
		c.Note(data(n+10, 1, 0))
	}
	if f := c.Failures(); !strings.HasPrefix(f[0].Problem, "3 of 3 expected events are missing, among them "+eventID(1)) {
		t.Error(f[0])
	}
	r := data(1, 1, 0)
	for _, id := range []string{eventID(1), "not a UUID", strings.ToUpper(eventID(1000000))} {
		set(&r, "ce_id", id)
		c.Note(r)
		c.Note(r)
	}
	if f := c.Failures(); c.Left() != 0 || strings.Contains(f[0].Problem, "missing") {
		t.Error(c.Left(), f[0])
	}
}

// A check that saw no data is not passed.
func TestSummaryOfNothing(t *testing.T) {
	g := All(NewUnique(), NewOrder())
	g.Note(mark(2, 1))
	if s := g.Summary(); s.OK() || s.Markers != 1 || s.Partitions != 1 || s.Topics != 1 {
		t.Errorf("%+v", s)
	}
	g.Note(data(1, 1, 2))
	const want = "1 records and 1 markers on 2 partitions of 1 topics\nunique     ok, 1\norder      ok, 1\n"
	if s := g.Summary(); !s.OK() || s.String() != want {
		t.Errorf("%v", s)
	}
}

// Of a topic that grew or lost its begin, a partition may begin late, and a key may be where the smaller count puts it;
// what else is broken is still found.
func TestLatePartitions(t *testing.T) {
	grown := func() (rs []Record) { // partition 2 is there from segment 1 on
		for _, r := range topic() {
			first := strings.Contains(string(r.Header("position")), "/0000/")
			switch {
			case r.Key != nil && first:
				r.Partition = partitionOf(r.Key, partitions-1)
			case r.Key == nil && r.Partition == 2 && r.Headers[0].Value[6] == '3':
				continue // the marker of segment 0
			}
			rs = append(rs, r)
		}
		return rs
	}
	for name, c := range map[string]struct {
		fault   func(rs []Record) []Record
		nothing bool
		found   string
	}{
		"grown":                      {func(rs []Record) []Record { return rs }, false, ""},
		"the last marker is missing": {func(rs []Record) []Record { return rs[:len(rs)-1] }, false, "resolved"},
		"no marker at all": {func(rs []Record) []Record {
			return slices.DeleteFunc(rs, func(r Record) bool { return r.Key == nil && r.Partition == 2 })
		}, false, "resolved"},
		"nothing is left": {func(rs []Record) []Record {
			return slices.DeleteFunc(rs, func(r Record) bool { return r.Key == nil && r.Partition == 2 })
		}, true, ""},
		"a partition that was there lacks one": {func(rs []Record) []Record {
			i := find(rs, isMark)
			return slices.Delete(rs, i, i+1)
		}, false, "resolved"},
		"a key where no count puts it": {func(rs []Record) []Record {
			for p := range int32(partitions) {
				if p != partitionOf(rs[0].Key, partitions) && p != partitionOf(rs[0].Key, partitions-1) {
					rs[0].Partition = p
				}
			}
			return rs
		}, false, "partition"},
		"swapped": {func(rs []Record) []Record { rs[8], rs[16] = rs[16], rs[8]; return rs }, false, "order"},
	} {
		resolved := NewResolved(partitions)
		resolved.Late(2, c.nothing)
		g := All(NewPartition(partitions, partitionOf).GrownFrom(partitions-1), NewOrder().Moves(), resolved)
		rs := c.fault(grown())
		for _, r := range rs {
			g.Note(r)
		}
		found := []string{}
		for _, c := range g.Summary().Checks {
			if len(c.Failures) > 0 {
				found = append(found, c.Name)
			}
		}
		if strings.Join(found, " ") != c.found {
			t.Errorf("%s: found by %v, want %q: %s", name, found, c.found, text(g.Failures()))
		}
		// As if it never changed: the late partition, or the keys that moved, are found.
		strict := All(NewPartition(partitions, partitionOf), NewOrder(), NewResolved(partitions))
		for _, r := range rs {
			strict.Note(r)
		}
		if strict.Summary().OK() {
			t.Errorf("%s: nothing is found", name)
		}
	}
	moved := replayed(ReplayExact, topic()).Moves()
	all := topic()
	slices.Reverse(all)
	for _, r := range all {
		moved.Note(r)
	}
	if f := moved.Failures(); len(f) > 0 {
		t.Error(text(f))
	}
}
