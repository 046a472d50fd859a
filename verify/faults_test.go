package verify

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

const partitions = 3

// Each fault is found by the validators that are there for it, and by no other.
func TestFaults(t *testing.T) {
	for name, c := range map[string]struct {
		fault func(rs []Record) []Record
		found string // validators
		says  string // one of the failures
	}{
		"none": {func(rs []Record) []Record { return rs }, "", ""},
		"an event twice": {func(rs []Record) []Record { return slices.Insert(rs, 5, rs[4]) },
			"unique order", "event 00007bbc-901e-007a-4eb5-cc621f000004 is repeated; first on partition"},
		"a deletion and its tombstone": {func(rs []Record) []Record {
			stone := rs[4]
			stone.Value = nil
			return slices.Insert(rs, 5, stone)
		}, "", ""},
		"a tombstone twice": {func(rs []Record) []Record {
			stone := rs[4]
			stone.Value = nil
			return slices.Insert(rs, 5, stone, stone)
		}, "unique order", "is repeated"},
		"a tombstone before its value": {func(rs []Record) []Record {
			stone := rs[4]
			stone.Value = nil
			return slices.Insert(rs, 4, stone)
		}, "unique order", "is repeated"},
		"a transaction twice": {func(rs []Record) []Record { return slices.Insert(rs, 16, rs[:16]...) },
			"unique order sequence", ""},
		"no id": {func(rs []Record) []Record { drop(&rs[9], "ce_id"); return rs },
			"unique", "no header ce_id"},
		"two events of a blob swapped": {func(rs []Record) []Record { rs[8], rs[16] = rs[16], rs[8]; return rs },
			"order sequence", ""},
		"an earlier chunk": {func(rs []Record) []Record {
			set(&rs[32], "position", "2020/05/27/0000/00/00000/99000/1")
			return rs
		},
			"order", "comes after the one in chunk 00001 at "},
		"no position": {func(rs []Record) []Record { drop(&rs[8], "position"); return rs },
			"order", `header position is ""`},
		"a sequencer falls": {func(rs []Record) []Record {
			set(&rs[8], "sequence", "0")
			set(&rs[0], "sequence", "1")
			return rs
		},
			"sequence", "sequence 0 comes after"},
		"no sequencer": {func(rs []Record) []Record { drop(&rs[8], "sequence"); return rs },
			"sequence", ""},
		"an odd sequencer": {func(rs []Record) []Record { set(&rs[8], "sequence", "xyz"); return rs },
			"sequence", ""},
		"the sequencer of a scanned row": {func(rs []Record) []Record { set(&rs[8], "sequence", ""); return rs }, "",
			""},
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
		"a key moves": {func(rs []Record) []Record {
			rs[20].Partition = (rs[20].Partition + 1) % partitions
			return rs
		},
			"partition", "belongs to partition"},
		"an old segment's event late": {func(rs []Record) []Record {
			// Of a blob of its own, so that only the barrier and the marker are hurt.
			late := data(3, 3, 0)
			i := find(rs, func(r *Record) bool {
				return r.Key != nil && r.Partition == late.Partition &&
					strings.Contains(string(r.Header("position")), "/0100/")
			})
			late.Key = []byte("other")
			rs = slices.Delete(rs, 3, 4)
			return slices.Insert(rs, i, late)
		}, "order partition resolved", ""},
		"data before its time": {func(rs []Record) []Record {
			set(&rs[60], "updated", "1590003599999999999.0000000000")
			return rs
		},
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
		"an odd marker": {func(rs []Record) []Record {
			return append(rs, Record{Topic: "changes", Value: []byte("{}")})
		},
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
			for _, name := range broken(g) {
				found[name] = true
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
			if c.found == "" && len(unproved(g)) > 0 {
				t.Errorf("%v judged nothing", unproved(g))
			}
		})
	}
}

// Of a topic that grew or lost its begin, a partition may begin late, and a key may be where the smaller count puts it;
// what else is broken is still found.
func TestLatePartitions(t *testing.T) {
	grown := func() (rs []Record) { // partition 2 is there from the marker of segment 0 on
		for _, r := range topic() {
			first := strings.Contains(string(r.Header("position")), "/0000/")
			if r.Key != nil && first {
				r.Partition = partitionOf(r.Key, partitions-1)
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
		}, false, "partition resolved"},
		"nothing is left": {func(rs []Record) []Record {
			return slices.DeleteFunc(rs, func(r Record) bool { return r.Partition == 2 })
		}, true, ""},
		"a partition that was there lacks one": {func(rs []Record) []Record {
			i := find(rs, isMark)
			return slices.Delete(rs, i, i+1)
		}, false, "partition resolved"},
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
		resolved.StartsLate(2, c.nothing)
		place := NewPartition(partitions-1, partitionOf, Growth{Partitions: partitions, Resolved: resolvedAt(0)})
		g := All(place, NewOrder(), resolved)
		rs := c.fault(grown())
		for _, r := range rs {
			g.Note(r)
		}
		found := broken(g)
		if strings.Join(found, " ") != c.found {
			t.Errorf("%s: found by %v, want %q: %s", name, found, c.found, text(g.Failures()))
		}
		// As if it never changed: the late partition, or the keys that moved, are found.
		strict := All(NewPartition(partitions, partitionOf), NewOrder(), NewResolved(partitions))
		for _, r := range rs {
			strict.Note(r)
		}
		if len(broken(strict)) == 0 {
			t.Errorf("%s: nothing is found", name)
		}
	}
	moved := replayed(&Replay{Moves: true}, topic())
	all := topic()
	slices.Reverse(all)
	for _, r := range all {
		moved.Note(r)
	}
	if f := moved.Failures(); len(f) > 0 {
		t.Error(text(f))
	}
}

// A follower begins at a marker, which says that the records behind it have headers.
func TestOrderBehindAMarker(t *testing.T) {
	o, forged := NewOrder(), data(40, 0, 1)
	at := mark(forged.Partition, 0)
	forged.Headers = nil
	o.Note(at)
	o.Note(forged)
	if text := fmt.Sprint(o.Failures()); !strings.Contains(text, `header position is ""`) {
		t.Errorf("a record without headers is not found: %s", text)
	}
}
