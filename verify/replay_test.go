package verify

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// replayed is a Replay that expects all of rs.
func replayed(v *Replay, rs []Record) *Replay {
	for _, r := range rs {
		v.Expect(r, true)
	}
	return v
}

func text(fs []Failure) (all string) {
	for _, f := range fs {
		all += f.String() + "\n"
	}
	return all
}

// bareTopic is a right topic without headers, with ids in the rows of values; each fifth event is a deletion, which has
// none.
func bareTopic() []Record {
	rs := topic()
	for i := range rs {
		r := &rs[i]
		if r.Key == nil {
			r.Headers = nil
			continue
		}
		after := fmt.Sprintf(`{"event_id": %q, "path": "x", "sequencer": %q}`, r.Header("ce_id"), r.Header("sequence"))
		if i%5 == 0 {
			after = "null"
		}
		r.Value = fmt.Appendf(nil, `{"after": %s, "key": %s, "updated": %q}`, after, r.Key, r.Header("updated"))
		r.Headers = []Header{{"extra", []byte("of the user")}}
	}
	return rs
}

// Each difference between two topics is found, and told with its record; what is no difference is not.
func TestReplay(t *testing.T) {
	const keep = "" // no failure
	for name, c := range map[string]struct {
		fault func(rs []Record) []Record
		says  [3]string // by mode
	}{
		"none": {func(rs []Record) []Record { return rs }, [3]string{}},
		"other partitions and offsets": {func(rs []Record) []Record {
			for i := range rs {
				rs[i].Topic, rs[i].Partition, rs[i].Offset = "other", 7, int64(1000+i)
			}
			return rs
		}, [3]string{}},
		"keys in another order": {func(rs []Record) []Record {
			slices.SortStableFunc(rs, func(a, b Record) int { return strings.Compare(string(b.Key), string(a.Key)) })
			return rs
		}, [3]string{}},
		"lost in the middle": {func(rs []Record) []Record { return slices.Delete(rs, 7, 8) },
			[3]string{"lacks 1 of 120 required events", "lacks 1 of 120 required events", keep}},
		"lost at the end": {func(rs []Record) []Record {
			last := len(rs) - 1
			for rs[last].Key == nil {
				last--
			}
			return slices.Delete(rs, last, last+1)
		}, [3]string{"is missing, number 15 of the key's 15", "1 of 120", "1 of 120"}},
		"a key lost": {func(rs []Record) []Record {
			return slices.DeleteFunc(rs, func(r Record) bool { return string(r.Key) == string(rs[3].Key) })
		}, [3]string{"15 of 120", "15 of 120", "1 of 120"}},
		"twice": {func(rs []Record) []Record { return slices.Insert(rs, 12, rs[4]) },
			[3]string{"event 00007bbc-901e-007a-4eb5-cc621f000004 is repeated", keep, "is repeated"}},
		"a transaction twice": {func(rs []Record) []Record { return slices.Insert(rs, 16, rs[:16]...) },
			[3]string{"is repeated", keep, "is repeated"}},
		"swapped": {func(rs []Record) []Record { rs[8], rs[16] = rs[16], rs[8]; return rs },
			[3]string{"event 0000f778-901e-007a-4eb5-cc621f000008 comes after a later one of its key",
				"comes after a later one", "comes after a later one"}},
		"another key": {func(rs []Record) []Record { return append(rs, data(1000, 99, 2)) },
			[3]string{"no event of this key is expected", "no event of this key", "no event of this key"}},
		"another event": {func(rs []Record) []Record { return append(rs, data(1000, 3, 2)) },
			[3]string{"cc621f0003e8 is not expected", "is not expected", "is not expected"}},
		"another value": {func(rs []Record) []Record { rs[8].Value = []byte("{ }"); return rs },
			[3]string{"another value", "another value", "another value"}},
		"a tombstone for a value": {func(rs []Record) []Record { rs[8].Value = nil; return rs },
			[3]string{"is not expected", "is not expected", "is not expected"}},
		"another header": {func(rs []Record) []Record { set(&rs[8], "ce_type", "u"); return rs },
			[3]string{"other headers", "other headers", "other headers"}},
		"a header less": {func(rs []Record) []Record { drop(&rs[8], "ce_time"); return rs },
			[3]string{"other headers", "other headers", "other headers"}},
		"a byte moved between headers": {func(rs []Record) []Record {
			set(&rs[8], "ce_source", "/ss")
			set(&rs[8], "ce_type", "")
			return rs
		},
			[3]string{"other headers", "other headers", "other headers"}},
		"another time": {func(rs []Record) []Record { rs[8].Millis++; return rs },
			[3]string{"another timestamp", "another timestamp", "another timestamp"}},
		"no time": {func(rs []Record) []Record { rs[8].Millis = 0; return rs }, [3]string{}},
	} {
		for _, of := range []struct {
			name string
			make func() []Record
		}{{"headers", topic}, {"bare", bareTopic}} {
			for mode, says := range c.says {
				t.Run(fmt.Sprintf("%s/%s/%d", name, of.name, mode), func(t *testing.T) {
					timed := func() []Record {
						rs := of.make()
						for i := range rs {
							rs[i].Millis = 1590000000000 + int64(i)
						}
						return rs
					}
					v := replayed(&Replay{Repeats: mode&1 != 0, Latest: mode&2 != 0}, timed())
					before := len(text(v.Failures()))
					for _, r := range c.fault(timed()) {
						v.Note(r)
					}
					got := text(v.Failures())
					if of.name == "bare" && strings.Contains(name, "header") {
						return // there are none to break
					}
					if of.name == "bare" && strings.Contains(name, "tombstone") {
						says = "is not expected" // it lost its id with its value
					}
					if before == 0 || (got == "") != (says == "") ||
						of.name == "headers" && !strings.Contains(got, says) ||
						v.Checked() == 0 {
						t.Errorf("want %q:\n%s", says, got)
					}
				})
			}
		}
	}
}

// A table keeps the latest event of each key: what is before it may be gone, and so may a tombstone that is the latest.
func TestReplayOfTable(t *testing.T) {
	stone := data(3, 2, 0)
	stone.Value = nil
	rs := []Record{data(1, 1, 0), data(2, 1, 0), data(4, 2, 0), stone}
	for name, c := range map[string]struct {
		have []Record
		says string
	}{
		"all":                    {rs, ""},
		"compacted":              {rs[1:2], ""},
		"compacted, stone stays": {[]Record{rs[1], rs[3]}, ""},
		"the latest is gone":     {rs[:1], "lacks 1 of 4 required events"},
		// not compacted yet: the stone may be gone with a later one only, but nobody can tell
		"older than the stone": {rs[1:3], ""},
		"a key is gone": {rs[2:], `key ["photos/1.jpg"]: an event is missing, ` +
			"number 2 of the key's 2"},
		"an older one comes last": {[]Record{rs[1], rs[0]}, "comes after a later one of its key"},
	} {
		v := replayed(&Replay{Latest: true}, rs)
		for _, r := range c.have {
			v.Note(r)
		}
		if got := text(v.Failures()); (got == "") != (c.says == "") || !strings.Contains(got, c.says) {
			t.Errorf("%s: want %q\n%s", name, c.says, got)
		}
	}
}

// A table of a bridge that may repeat events: compaction may keep a copy, and not the one that came first.
func TestReplayOfTableWithRepeats(t *testing.T) {
	rs := []Record{data(1, 1, 0), data(2, 1, 0), data(3, 1, 0)}
	again := func(r Record) Record {
		r.Headers = append(slices.Clone(r.Headers), Header{Key: "epoch", Value: []byte("1")})
		return r
	}
	other := again(rs[2])
	other.Value = []byte("x")
	for name, c := range map[string]struct {
		have []Record
		says string
	}{
		"repeated":                      {[]Record{rs[0], rs[1], rs[2], again(rs[1]), again(rs[2])}, ""},
		"compacted to the copy":         {[]Record{again(rs[2])}, ""},
		"compacted before the copies":   {[]Record{rs[1], again(rs[0]), again(rs[1]), again(rs[2])}, ""},
		"an older copy is the last one": {[]Record{rs[2], again(rs[1])}, "the newest event is not the last one of 1 of 1"},
		"the latest is gone":            {[]Record{rs[1], again(rs[1])}, "lacks 1 of 3 required events"},
		"another value":                 {[]Record{rs[2], other}, "has another value"},
	} {
		v := replayed(&Replay{Repeats: true, Latest: true}, rs)
		for _, r := range c.have {
			v.Note(r)
		}
		if got := text(v.Failures()); (got == "") != (c.says == "") || !strings.Contains(got, c.says) {
			t.Errorf("%s: want %q\n%s", name, c.says, got)
		}
	}
}

// If the last record of a key is of an older event, the report has its place, and the number of the newest event.
func TestReplayNamesTheLastRecord(t *testing.T) {
	v := replayed(&Replay{Repeats: true}, []Record{data(1, 1, 0), data(2, 1, 0), data(3, 2, 0), data(4, 2, 0)})
	offset := int64(40)
	for _, n := range []int{1, 2, 3, 4, 1, 3} { // the newest do not come again
		r := data(n, (n+1)/2, 0)
		r.Topic, r.Partition, r.Offset = []string{"first", "second"}[(n-1)/2], int32(5+(n-1)/2), offset
		offset++
		v.Note(r)
	}
	var got []Failure
	for _, f := range v.Failures() {
		if f.Topic != "" {
			got = append(got, f)
		}
	}
	problem := "the last event is number 1 of the key's 2, and number 2 came before"
	want := []Failure{
		{"first", 5, 44, string(data(1, 1, 0).Key), 2, true, problem},
		{"second", 6, 45, string(data(3, 2, 0).Key), 2, true, problem},
	}
	if !slices.Equal(got, want) {
		t.Errorf("have %+v, want %+v", got, want)
	}
}

// What is not required may be missing, may come, and is still compared.
func TestReplayNotRequired(t *testing.T) {
	v := &Replay{}
	for n := range 10 {
		v.Expect(data(n, 1, 0), n < 5)
	}
	for n := range 7 {
		r := data(n, 1, 0)
		if n == 6 {
			r.Value = []byte("x")
		}
		v.Note(r)
	}
	if got := text(v.Failures()); !strings.Contains(got, "cc621f000006 has another value") ||
		strings.Contains(got, "missing") ||
		v.Required != 5 {
		t.Error(got)
	}
}

// Of the events that a seek may have skipped the missing ones are counted, a deletion with its tombstone once. In a
// compacted topic the required event before them is the latest of its key, and so it must be there.
func TestReplayCountsSkipped(t *testing.T) {
	deletion, tombstone := data(4, 1, 0), data(4, 1, 0)
	tombstone.Value = nil
	skipped := []Record{data(1, 1, 0), deletion, tombstone, data(5, 2, 0)}
	for name, c := range map[string]struct {
		have   []Record
		latest bool
		skips  int64
		says   string
	}{
		"all are missing":           {[]Record{data(0, 1, 0)}, false, 3, ""},
		"the tombstone came":        {[]Record{data(0, 1, 0), tombstone}, false, 3, ""},
		"the tombstone is missing":  {[]Record{data(0, 1, 0), deletion}, false, 3, ""},
		"all came":                  {append([]Record{data(0, 1, 0)}, skipped...), false, 0, ""},
		"a required one is missing": {skipped, false, 0, "lacks 1 of 1"},
		"compacted":                 {[]Record{data(0, 1, 0)}, true, 1, ""},
		"compacted, all came":       {skipped[2:], true, 0, ""},
	} {
		v := &Replay{Latest: c.latest}
		v.Expect(data(0, 1, 0), true)
		for _, r := range skipped {
			v.Skip(r)
		}
		for _, r := range c.have {
			v.Note(r)
		}
		if got := text(v.Failures()); v.Skipped() != c.skips || v.Doubtful() != 0 || (got == "") != (c.says == "") ||
			!strings.Contains(got, c.says) {
			t.Errorf("%s: %d skipped, %d doubtful, want %d: %s", name, v.Skipped(), v.Doubtful(), c.skips, got)
		}
	}
	v := &Replay{Latest: true}
	v.Expect(data(0, 1, 0), true)
	v.Skip(data(1, 1, 0))
	if got := text(v.Failures()); !strings.Contains(got, "lacks 1 of 1") || v.Skipped() != 1 {
		t.Errorf("%d skipped: %s", v.Skipped(), got)
	}
}

// An event that the feed itself has twice is expected twice.
func TestReplayOfRepeatedEvent(t *testing.T) {
	rs := []Record{data(1, 1, 0), data(2, 1, 0), data(3, 1, 0), data(1, 1, 0)}
	v := replayed(&Replay{}, rs)
	for _, i := range []int{0, 2, 1, 3} { // disorder makes it search
		v.Note(rs[i])
	}
	if got := v.Failures(); len(got) != 1 || !strings.Contains(got[0].Problem, "comes after a later one") {
		t.Error(text(got))
	}
	v.Note(rs[0])
	if got := text(v.Failures()); !strings.Contains(got, "is repeated") {
		t.Error(got)
	}
}

// Two copies of an event in the log differ in their position, so each record is the one that it says, whatever is
// repeated before the second copy comes.
func TestReplayOfRepeatedCopies(t *testing.T) {
	first, second := data(1, 1, 0), data(1, 1, 0)
	second.Headers = slices.Clone(second.Headers)
	for i, h := range second.Headers {
		if h.Key == "position" {
			second.Headers[i].Value = []byte("2020/05/27/0000/01/00000/0/2")
		}
	}
	log := []Record{data(0, 1, 0), first, second, data(2, 1, 0)}
	for order, problem := range map[string]string{
		"0123": "", "01123": "", "01012123": "", "0123123": "", "012312": "number 3 of the key's 4", "0133": "lacks 1 of 4",
	} {
		v := replayed(&Replay{Repeats: true}, log)
		for _, i := range order {
			v.Note(log[i-'0'])
		}
		if f := text(v.Failures()); (f != "") != (problem != "") || !strings.Contains(f, problem) {
			t.Errorf("%s: %s, want %q", order, f, problem)
		}
	}
}

// Missing events are counted all, and told in the order of their keys, some of them.
func TestReplayMissingIsBounded(t *testing.T) {
	v := replayed(&Replay{}, topic())
	f := v.Failures()
	if len(f) != 1+examples || f[0].Problem != "lacks 120 of 120 required events" ||
		f[1].Key != `["photos/0.jpg"]` {
		t.Error(text(f))
	}
}

// With repeats, what is repeated may be behind anything, but not behind the newest event of its key that has to be
// there.
func TestReplayEndsOnNewest(t *testing.T) {
	event := func(i int) Record {
		return Record{Topic: "t", Key: []byte("k"), Value: fmt.Appendf(nil, "%d", i), Headers: []Header{
			{Key: "ce_id", Value: fmt.Appendf(nil, "%d", i)}, {Key: "epoch", Value: fmt.Appendf(nil, "%d", i)}}}
	}
	for order, problem := range map[string]string{
		"012": "", "01012": "", "0121": "number 2 of the key's 3", "012012": "", "01201": "number 2 of the key's 3",
	} {
		v := &Replay{Repeats: true}
		for i := range 3 {
			r := event(i)
			r.Headers = r.Headers[:1]
			v.Expect(r, true)
		}
		for _, i := range order {
			v.Note(event(int(i - '0')))
		}
		if f := v.Failures(); len(f) > 0 != (problem != "") || !strings.Contains(fmt.Sprint(f), problem) {
			t.Errorf("%s: %v, want %q", order, f, problem)
		}
	}
}
