package status

import (
	"strings"
	"testing"
	"time"

	"blobfeed/offsets"
	"blobfeed/source"
	"blobfeed/source/inventory"
)

// The verdict of a state: what the verb says, and what --check goes by.
func TestVerdict(t *testing.T) {
	now := time.Date(2026, 1, 31, 13, 0, 0, 0, time.UTC)
	seg := source.SegmentAt(now)
	running := Group{State: stable, Members: []Member{{Instance: "one", Leases: []int32{0, 1}}}}
	failure := &offsets.Failure{Time: now.Add(-time.Hour), Error: "no route\nto host"}
	for name, c := range map[string]struct {
		group    Group
		frontier *offsets.Frontier
		cursor   offsets.Cursor // of lease 0
		want     string
		code     string
		bad      bool
	}{
		"live": {running, &offsets.Frontier{Current: seg}, offsets.Cursor{}, "up to date", UpToDate, false},
		"an old error": {
			running, &offsets.Frontier{Completed: seg}, offsets.Cursor{Error: failure}, "up to date", UpToDate, false,
		},
		"before progress": {running, nil, offsets.Cursor{}, "starting: nothing is delivered yet", Starting, false},
		"before its first segment": {
			running, &offsets.Frontier{}, offsets.Cursor{}, "starting: no segment of the feed is begun yet", Starting, false,
		},
		"an error that lasts": {
			running, &offsets.Frontier{CatchUp: &offsets.CatchUp{Left: 5}}, offsets.Cursor{Error: failure, Failing: true},
			`degraded: lease 0: no route\u000ato host`, Degraded, true,
		},
		"behind": {
			running, &offsets.Frontier{CatchUp: &offsets.CatchUp{Left: 5}}, offsets.Cursor{},
			"catching up: segment 1 of 5, 0 %", CatchingUp, false,
		},
		"without members": {
			Group{State: "Empty"}, &offsets.Frontier{},
			offsets.Cursor{Time: now.Add(-3 * time.Minute), Error: failure, Failing: true},
			"nobody is running: the last commit was 3m0s ago", Nobody, true,
		},
		"without members, after an error": {
			Group{State: "Empty"}, &offsets.Frontier{},
			offsets.Cursor{Time: failure.Time.Add(reported / 2), Error: failure},
			`nobody is running: the last commit was 1h0m ago, and the last error: no route\u000ato host`, Nobody, true,
		},
		"without members, after an error that is over": {
			Group{State: "Empty"}, &offsets.Frontier{}, offsets.Cursor{Time: failure.Time.Add(reported), Error: failure},
			"nobody is running: the last commit was 59m59s ago", Nobody, true,
		},
		"without members, after its end": {
			Group{State: "Dead"}, &offsets.Frontier{Ended: true}, offsets.Cursor{},
			"up to date: everything up to BRIDGE_END_TIME is delivered", UpToDate, false,
		},
		"without members, after run --once": {
			Group{State: "Dead"}, &offsets.Frontier{Current: seg}, offsets.Cursor{Time: now.Add(-4 * time.Minute)},
			"up to date: run --once delivered everything 3m20s ago", UpToDate, false,
		},
		"with partitions that somebody added": {
			Group{State: stable, Members: []Member{{Instance: "one", Leases: []int32{0, 1}}}},
			&offsets.Frontier{Current: seg, Leases: 1}, offsets.Cursor{},
			"degraded: b.offsets has 2 partitions, and its state is made for 1, which never changes", Degraded, true,
		},
		"with partitions that somebody added, after run --once": {
			Group{State: "Dead"}, &offsets.Frontier{Current: seg, Leases: 1}, offsets.Cursor{},
			"degraded: b.offsets has 2 partitions, and its state is made for 1, which never changes", Degraded, true,
		},
		"a lease that nobody has": {
			Group{State: stable, Members: []Member{{Instance: "one", Leases: []int32{0}}}}, &offsets.Frontier{},
			offsets.Cursor{},
			"degraded: no instance has 1 of the 2 leases", Degraded, true,
		},
		"while members agree": {
			Group{State: "PreparingRebalance", Members: []Member{{Instance: "one"}}}, &offsets.Frontier{Current: seg},
			offsets.Cursor{}, "up to date", UpToDate, false,
		},
		"an instance, which does not know the group": {
			Group{}, &offsets.Frontier{Current: seg}, offsets.Cursor{}, "up to date", UpToDate, false,
		},
	} {
		state := &offsets.State{
			Frontier: c.frontier, Cursors: []*offsets.Cursor{&c.cursor, nil}, Owners: []string{"one", "gone"},
		}
		if strings.HasSuffix(name, "after run --once") {
			state.Delivered = &offsets.Delivered{Time: now.Add(-200 * time.Second)}
		}
		s := Of("b", state, c.group, now)
		want := Verdict{Code: c.code, Text: c.want}
		if c.code == Nobody && !strings.Contains(c.want, "last error") {
			want.Remedy = "start an instance with bridge run"
		}
		if strings.Contains(c.want, "made for") {
			want.Remedy = "partitions cannot be removed, so restart from scratch with another BRIDGE_NAME, or with bridge " +
				"reset (BRIDGE_START says where delivery begins then)"
		}
		if s.Verdict != want || s.Verdict.Bad() != c.bad {
			t.Errorf("%s: %+v, bad %v", name, s.Verdict, s.Verdict.Bad())
		}
		if text := s.Text(); !strings.HasPrefix(text, c.want+"\n") {
			t.Errorf("%s: the report begins with %.80q", name, text)
		}
	}
}

// An initial scan is the beginning of the way to the end of the feed. A repeated one runs beside the feed.
func TestVerdictOfAScan(t *testing.T) {
	now := time.Date(2026, 1, 31, 13, 0, 0, 0, time.UTC)
	for want, scan := range map[string]offsets.Scan{
		CatchingUp + " scanning the account: container 3, 5,000 rows, 100 rows/s":           {Initial: true},
		UpToDate + " up to date, scanning the account: container 3, 5,000 rows, 100 rows/s": {},
		UpToDate + " up to date": {Initial: true, Done: true},
	} {
		scan.Requested = now.Add(-50 * time.Second)
		c := &offsets.Cursor{Scan: &offsets.Listing{Rows: 5000, Progress: inventory.Progress{Containers: 3}}}
		v := Of("b", &offsets.State{
			Frontier: &offsets.Frontier{Current: source.SegmentAt(now), Scan: &scan},
			Cursors:  []*offsets.Cursor{c}, Owners: []string{""},
		}, Group{}, now).Verdict
		if got := v.Code + " " + v.Text; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// What to do about the worst problem is never cut off, and is apart from the cause, which is one line.
func TestVerdictHasTheRemedy(t *testing.T) {
	s := Status{Started: true}
	cause, do := strings.Repeat("ä", 300)+"\n", "set BRIDGE_ON_GAP=continue"
	v := s.Judge("", []Problem{{cause, do}, {Cause: "another"}})
	if v.Text != "degraded: "+cause[:600]+`\u000a (and 1 more)` || v.Remedy != do {
		t.Errorf("%+v", v)
	}
	s.Verdict = v
	if lines := strings.Split(s.Text(), "\n"); lines[0] != v.Text || lines[1] != "-> "+do {
		t.Errorf("%q", lines[:2])
	}
	if v := s.Judge("", []Problem{{Cause: strings.Repeat("ä", 500000)}}); len(v.Text) > 3000 {
		t.Errorf("%d bytes", len(v.Text))
	}
}

// Without numbers, as between a start and the first listing, the age of what waits says that the bridge is behind.
func TestVerdictByLag(t *testing.T) {
	s := Status{Started: true, Position: Position{Current: "a segment"}, Lag: Lag{Bridge: known(7200)}}
	if v := s.Judge("", nil); v != (Verdict{Code: CatchingUp, Text: "catching up: events wait for 2h0m"}) {
		t.Errorf("%+v", v)
	}
	*s.Lag.Bridge = 59
	if v := s.Judge("", nil); v.Code != UpToDate {
		t.Errorf("%+v", v)
	}
}

// A check names the error that the next run may meet again, and none that is over.
func TestLastError(t *testing.T) {
	at := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	failure := &offsets.Failure{Time: at, Error: "no route to host"}
	running, nobody := Group{State: stable, Members: []Member{{Instance: "i1"}}}, Group{State: "Empty"}
	for name, tc := range map[string]struct {
		group     Group
		after     time.Duration // of the last commit
		failing   bool
		delivered bool // by run --once
		want      bool
	}{
		"it lasts":                       {running, time.Hour, true, false, true},
		"it is over":                     {running, reported / 2, false, false, false},
		"it lasts, and nobody runs":      {nobody, time.Hour, true, false, true},
		"it came last, and nobody runs":  {nobody, reported / 2, false, false, true},
		"it was over before the end":     {nobody, reported, false, false, false},
		"run --once has delivered since": {nobody, reported / 2, false, true, false},
	} {
		state := &offsets.State{
			Frontier: &offsets.Frontier{}, Owners: []string{"", "i1"},
			Cursors: []*offsets.Cursor{nil, {Time: at.Add(tc.after), Error: failure, Failing: tc.failing}},
		}
		if tc.delivered {
			state.Delivered = &offsets.Delivered{Time: at.Add(time.Hour)}
		}
		e := Of("b", state, tc.group, at.Add(2*time.Hour)).LastError()
		if (e != nil) != tc.want || e != nil && (e.Lease != 1 || e.Error != failure.Error) {
			t.Errorf("%s: %+v, want one: %v", name, e, tc.want)
		}
	}
}
