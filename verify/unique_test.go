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
