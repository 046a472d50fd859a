package verify

import (
	"slices"
	"strings"
	"testing"
)

// Azure's log can hold an event at two positions: both copies are right, and counted. A position that is delivered
// twice is a failure, of the first copy and of the second, as a value and as a tombstone.
func TestTwiceInTheLog(t *testing.T) {
	record := func(position string, value []byte) Record {
		r := data(0, 0, 0)
		r.Headers = slices.Clone(r.Headers)
		set(&r, "position", position)
		r.Value = value
		return r
	}
	one, two, value := "2020/03/03/0000/00/00000/26116/9", "2020/03/03/0000/00/00000/27021/0", []byte("{}")
	for name, c := range map[string]struct {
		records  []Record
		twice    int64
		failures int
	}{
		"twice in the log":             {[]Record{record(one, value), record(two, value)}, 1, 0},
		"the first delivered twice":    {[]Record{record(one, value), record(two, value), record(one, value)}, 1, 1},
		"the second delivered twice":   {[]Record{record(one, value), record(two, value), record(two, value)}, 1, 1},
		"as values and tombstones":     {[]Record{record(one, value), record(one, nil), record(two, value), record(two, nil)}, 1, 0},
		"a second tombstone":           {[]Record{record(one, value), record(one, nil), record(one, nil)}, 0, 1},
		"no position: it is not known": {[]Record{record("", value), record("", value)}, 0, 1},
	} {
		u := NewUnique()
		for i, r := range c.records {
			r.Offset = int64(i)
			u.Note(r)
		}
		if got := u.Failures(); len(got) != c.failures || u.Twice != c.twice {
			t.Errorf("%s: %d twice, %v", name, u.Twice, got)
		}
	}
	u := NewUnique()
	u.Note(record("", value))
	u.Note(record("", value))
	if f := u.Failures(); !strings.Contains(f[0].Problem, "looks the same") {
		t.Error(f)
	}
}

// A topic in which all comes twice is one of a bridge that has begun again.
func TestDoubled(t *testing.T) {
	log := []Record{data(0, 0, 0), data(8, 0, 0), data(1, 1, 0), data(2, 2, 0)}
	gone := log[0]
	gone.Value = nil // DELETES=both
	log = slices.Insert(log, 1, gone)
	swapped := slices.Clone(log)
	swapped[0], swapped[1], swapped[2] = log[2], log[0], log[1]
	for name, c := range map[string]struct {
		then    []Record
		n       int64
		ordered bool
	}{
		"all":                    {log, 5, true},
		"in another order":       {swapped, 5, false},
		"but for one":            {log[1:], 0, false},
		"one more often":         {append(slices.Clone(log[1:]), log[1]), 0, false},
		"not again":              {nil, 0, false},
		"again and again":        {slices.Concat(log, log), 0, false},
		"on another partition":   {elsewhere(log), 5, false},
		"and one that was not":   {append(slices.Clone(log), data(3, 3, 0)), 0, false},
		"a tombstone once":       {slices.Delete(slices.Clone(log), 1, 2), 0, false},
		"a tombstone in between": {slices.Concat(log[1:2], log[:1], log[2:]), 5, true}, // of one event
	} {
		u, next := NewUnique(), map[int32]int64{}
		for _, r := range slices.Concat(log, c.then) {
			r.Offset = next[r.Partition]
			next[r.Partition]++
			u.Note(r)
		}
		if n, ordered := u.Doubled(); n != c.n || ordered != c.ordered {
			t.Errorf("%s: %d, in order: %t", name, n, ordered)
		}
	}
}

func elsewhere(rs []Record) []Record {
	rs = slices.Clone(rs)
	for i := range rs {
		rs[i].Partition++
	}
	return rs
}

// In a topic with added partitions a sweep can write a deletion for the record in each partition. A row stays once.
func TestSweptTwiceAfterGrowth(t *testing.T) {
	gone := listedLater(3)
	gone.Value = []byte(`{"after": null, "updated": "1590012000123000000.0000000000"}`)
	row := listedLater(3)
	row.Value = []byte(`{"after": {"path": "photos/3.jpg"}, "updated": "1590012000123000000.0000000000"}`)
	for name, c := range map[string]struct {
		moves    bool
		record   Record
		failures int
	}{
		"a deletion":                      {true, gone, 0},
		"a deletion, no partitions added": {false, gone, 1},
		"a row":                           {true, row, 1},
		"an event":                        {true, data(0, 0, 0), 1},
	} {
		v := NewUnique()
		v.Moves = c.moves
		v.Note(c.record)
		v.Note(c.record)
		if f := v.Failures(); len(f) != c.failures {
			t.Errorf("%s: %v", name, f)
		}
	}
}
