package status

import (
	"testing"
	"time"

	"blobfeed/offsets"
	"blobfeed/source"
)

func known(f float64) *float64 { return &f }

// One line, of what is known.
func TestProgressInALine(t *testing.T) {
	for want, p := range map[string]Progress{
		"catching up: segment 4 of 7, 57 %, 210,000 events/s, about 40s left": {
			Phase: "catching up", Step: "segment", Item: "events", Done: 3, Total: 7, Share: known(0.579), Rate: known(209871),
			Left: known(40.2),
		},
		"catching up: about 1s left":           {Phase: "catching up", Left: known(0.1)},
		"catching up: segment 1 of 1,200, 0 %": {Phase: "catching up", Step: "segment", Total: 1200, Share: known(0.0001)},
		"scanning the account: container 4 of 50, 412,000 rows, 110,000 rows/s": {
			Phase: "scanning the account", Step: "container", Item: "rows", Done: 3, Total: 50, Items: 412000,
			Rate: known(112345),
		},
		"scanning the account: container 4, 412,000 rows": {
			Phase: "scanning the account", Step: "container", Item: "rows", Done: 4, Items: 412000,
		},
		"scanning the account":              {Phase: "scanning the account"},
		"catching up: segment 7 of 7, 99 %": {Phase: "catching up", Step: "segment", Done: 7, Total: 7, Share: known(0.999)},
	} {
		if got := p.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// The state alone says how far a catch-up is: whole segments by their names, the current one by its bytes.
func TestCatchUpOfAState(t *testing.T) {
	at := time.Date(2026, 1, 31, 13, 0, 0, 0, time.UTC)
	current := source.SegmentAt(at.Add(-5 * time.Hour))
	cursor := func(read, ahead, listed int64) *offsets.Cursor {
		return &offsets.Cursor{
			Time:    at,
			Segment: current,
			Counts:  offsets.Counts{Read: read},
			Ahead:   ahead,
			Listed:  listed,
		}
	}
	f := offsets.Frontier{
		Time: at.Add(-5 * time.Second), Current: current,
		CatchUp: &offsets.CatchUp{Done: 3, Left: 5, From: 1, Since: at.Add(-100 * time.Second), Read: 1000},
	}
	s := Of("b", &offsets.State{
		Frontier: &f, Owners: make([]string, 3),
		Cursors: []*offsets.Cursor{cursor(900_000, 0, 0), cursor(101_000, 50, 100), nil},
	}, Group{}, at.Add(time.Minute))
	// 2.5 segments in 100 s: the other 4.5 take 180 s.
	if p := s.Progress; p == nil || p.Done != 3 || p.Total != 8 || *p.Share != 3.5/8 || *p.Rate != 10_000 ||
		*p.Left != 180 {
		t.Errorf("%+v: %s", p, p)
	}
	want := "catching up: segment 4 of 8, 43 %, 10,000 events/s, about 3m0s left"
	if s.Verdict != (Verdict{Code: CatchingUp, Text: want}) {
		t.Errorf("%+v", s.Verdict)
	}
	of := func(way offsets.CatchUp, c *offsets.Cursor, later time.Duration) *Progress {
		f.CatchUp = &way
		state := &offsets.State{Frontier: &f, Owners: []string{""}, Cursors: []*offsets.Cursor{c}}
		return Of("b", state, Group{}, at.Add(later)).Progress
	}
	newest, old := offsets.CatchUp{Done: 3, Left: 1, Since: at}, offsets.CatchUp{Done: 3, Left: 5, Since: at}
	for when, c := range map[string]struct {
		way    offsets.CatchUp
		cursor *offsets.Cursor
		later  time.Duration
		over   bool
	}{
		"in an old segment":                    {old, cursor(1, 0, 10), time.Minute, false},
		"in the newest segment":                {newest, cursor(1, 5, 10), time.Minute, false},
		"at the end of the newest segment":     {newest, cursor(1, 0, 10), 0, true},
		"before the newest segment is listed":  {newest, cursor(1, 0, 0), 0, false},
		"in a newest segment that stays empty": {newest, cursor(1, 0, 0), time.Minute, true},
	} {
		if p := of(c.way, c.cursor, c.later); (p == nil) != c.over {
			t.Errorf("%s: %v", when, p)
		}
	}
	old.Since = at.Add(-time.Second)
	if p := of(old, cursor(1, 5, 10), 0); p.Rate != nil || p.Left != nil {
		t.Errorf("a speed out of a second: %s", p)
	}
}
