package status

import (
	"testing"
	"time"

	"blobfeed/offsets"
	"blobfeed/source"
)

// Who holds a lease and who lives are two things: the owner is in the topic, the members are in the group.
func TestOf(t *testing.T) {
	now := time.Date(2026, 1, 31, 13, 0, 0, 0, time.UTC)
	before, current := source.SegmentAt(now.Add(-2*time.Hour)), source.SegmentAt(now.Add(-time.Hour))
	cursor := func(seg source.Segment, event time.Duration, ahead int64, failed time.Duration) *offsets.Cursor {
		c := &offsets.Cursor{
			Time:   now,
			Counts: offsets.Counts{Read: 3, Emitted: 2, Filtered: 1},
			Event:  now.Add(-event),
			Ahead:  ahead,
		}
		if failed > 0 {
			c.Error = &offsets.Failure{Time: now.Add(-failed), Error: "no route"}
		}
		c.Advance(seg, 1, source.ShardPosition{Chunk: 2, Offset: 300})
		return c
	}
	state := &offsets.State{
		Frontier: &offsets.Frontier{
			Completed: before,
			Current:   current,
			Resolved:  "1769860800000000000.0000000000",
			Feed:      "feed",
			Topics:    map[string]int32{"b": 2, "a": 1},
		},
		Cursors: []*offsets.Cursor{
			cursor(current, 3*time.Minute, 10, 0),
			cursor(current, 2*time.Minute, 5, time.Hour),
			cursor(before, time.Hour, 100, time.Minute),
			nil,
			nil,
		},
		Owners: []string{"one", "gone", "gone", "", ""},
	}
	group := Group{State: "Stable", Members: []Member{{Instance: "one", Leases: []int32{0, 1, 3}}}}
	s := Of("b", state, group, now)
	for p, want := range []string{Held, Assigned, Free, Assigned, Unused} {
		if got := s.Leases[p]; got.State != want {
			t.Errorf("lease %d is %s, want %s", p, got.State, want)
		}
	}
	if l := s.Leases[1]; l.Owner != "gone" || l.Member != "one" || l.Shards["01"] != "00002/300" ||
		l.Segment != current.String() ||
		l.Events != 3 {
		t.Errorf("%+v", l)
	}
	if l := s.Leases[2]; !l.Frontier || l.Segment != "" || l.Shards != nil || l.Ahead != 0 || l.Events != 3 ||
		s.Leases[0].Frontier ||
		s.Leases[3].Frontier {
		t.Errorf("behind the frontier: %+v", l)
	}
	if *s.Lag.Ahead != 15 || *s.Lag.Event != 120 || *s.Lag.Resolved != 3600 || s.Totals.Read != 9 ||
		s.Totals.Filtered != 3 {
		t.Errorf("lag %+v, event %v, totals %+v", s.Lag, *s.Lag.Event, s.Totals)
	}
	if len(s.Errors) != 2 || s.Errors[0].Lease != 2 || s.Errors[1].Lease != 1 || s.Topics[0].Name != "a" {
		t.Errorf("errors %+v, topics %+v", s.Errors, s.Topics)
	}
	if s := Of("b", &offsets.State{Cursors: make([]*offsets.Cursor, 1), Owners: make([]string, 1)}, Group{}, now); s.Started ||
		s.Lag.Event != nil ||
		s.Lag.Resolved != nil ||
		s.Leases[0].State != Unused {
		t.Errorf("without progress: %+v", s)
	}
	fenced := &offsets.State{Cursors: make([]*offsets.Cursor, 1), Owners: make([]string, 1)}
	fenced.Cursors[0] = new(offsets.Cursor)
	if s := Of("b", fenced, Group{}, now); s.Leases[0].State != Free {
		t.Errorf("fenced for a move: %+v", s.Leases[0])
	}
}

// How much is ahead is known only where a lease has committed in the current segment. A zero that nobody has
// counted would say "caught up" in the middle of a catch-up.
func TestAheadIsKnownOrNull(t *testing.T) {
	at := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	before, current := source.SegmentAt(at.Add(-time.Hour)), source.SegmentAt(at)
	bytes := func(n int64) *int64 { return &n }
	for name, c := range map[string]struct {
		frontier offsets.Frontier
		in       source.Segment // of the cursor
		want     *int64
	}{
		"in a segment":                {offsets.Frontier{Completed: before, Current: current}, current, bytes(70)},
		"at the segment's first byte": {offsets.Frontier{Completed: before, Current: current}, before, nil},
		"between bundles":             {offsets.Frontier{Completed: before}, before, nil},
		"before the first segment":    {offsets.Frontier{}, source.Segment{}, nil},
		"at the end":                  {offsets.Frontier{Completed: current, Ended: true}, current, bytes(0)},
	} {
		state := &offsets.State{
			Frontier: &c.frontier,
			Cursors:  []*offsets.Cursor{{Segment: c.in, Ahead: 70}},
			Owners:   []string{"one"},
		}
		got := Of("b", state, Group{}, at).Lag.Ahead
		if (got == nil) != (c.want == nil) || got != nil && *got != *c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// An empty topic is suspect only if it had a record or a marker for sure.
func TestFilled(t *testing.T) {
	inline := map[string]string{offsets.FrozenMarkers: "inline"}
	one, two := map[string]int32{"a": 1}, map[string]int32{"a": 1, "b": 1}
	for name, c := range map[string]struct {
		frontier offsets.Frontier
		counts   offsets.Counts
		want     bool
	}{
		"a record in the only topic":   {offsets.Frontier{Topics: one}, offsets.Counts{Emitted: 1}, true},
		"a row in the only topic":      {offsets.Frontier{Topics: one}, offsets.Counts{Scanned: 1}, true},
		"a record in one of many":      {offsets.Frontier{Topics: two}, offsets.Counts{Emitted: 1}, false},
		"nothing but what is filtered": {offsets.Frontier{Topics: one}, offsets.Counts{Read: 1, Filtered: 1}, false},
		"a marker in each":             {offsets.Frontier{Topics: two, Resolved: "1.0", Settings: inline}, offsets.Counts{}, true},
		"a marker that is owed": {offsets.Frontier{Topics: two, Resolved: "1.0", Settings: inline, Owed: true},
			offsets.Counts{}, false},
		"markers elsewhere": {offsets.Frontier{Topics: two, Resolved: "1.0"}, offsets.Counts{}, false},
		"after a seek": {offsets.Frontier{Topics: one, Resolved: "1.0", Settings: inline, Seek: &offsets.Seek{}},
			offsets.Counts{Emitted: 1}, false},
	} {
		if got := filled(&c.frontier, c.counts); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
