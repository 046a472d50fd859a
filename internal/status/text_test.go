package status

import (
	"strings"
	"testing"
	"time"

	"blobfeed/offsets"
	"blobfeed/source"
)

// A clock that is behind makes no negative age.
func TestNoAgeOfTheFuture(t *testing.T) {
	now := time.Date(2026, 1, 31, 13, 0, 0, 0, time.UTC)
	state := &offsets.State{Frontier: &offsets.Frontier{Resolved: "1769868000000000000.0000000000"}}
	s := Of("b", state, Group{}, now)
	if *s.Lag.Resolved != 0 || !strings.Contains(s.Text(), "\nresolved  2026-01-31T14:00:00Z, in the future\n") {
		t.Errorf("lag %v: %s", *s.Lag.Resolved, s.Text())
	}
}

// A lease without a commit in the current segment has delivered what is complete, not all.
func TestTextOfALeaseWithoutACommit(t *testing.T) {
	s := &Status{Position: Position{Completed: "2026/01/31/1100", Current: "2026/01/31/1200"},
		Leases: []Lease{{Owner: "one", State: Held, Frontier: true}}}
	if got := s.Text(); !strings.Contains(got, "\n0      held   one    2026/01/31/1100 done  -") {
		t.Errorf("%s", got)
	}
}

// An error stays in the report until there is another, and the report says whether the lease has gone on since.
func TestTextSaysHowOldAnErrorIs(t *testing.T) {
	met := time.Date(2026, 1, 31, 13, 0, 0, 0, time.UTC)
	committed := met.Add(41 * time.Second)
	s := &Status{
		Leases: []Lease{{Committed: &committed}},
		Errors: []Failure{{Failure: offsets.Failure{Time: met, Error: "no route"}}},
	}
	if got, want := s.Text(), "last error of lease 0 at 2026-01-31T13:00:00Z, 41s before its last commit: no route\n"; !strings.HasSuffix(
		got,
		want,
	) {
		t.Errorf("%s\nwant %s", got, want)
	}
}

// Without a current segment, no lease can commit in it; and a seek went to a time.
func TestTextBetweenSegments(t *testing.T) {
	s := &Status{Started: true, Position: Position{Completed: "2029/12/31/2244",
		Seek: &offsets.Seek{To: "1893456000000000000.0000000000"}}}
	got := s.Text()
	for _, want := range []string{
		"ahead     nothing that is begun: an instance looks for more when it runs\n",
		"\nsegment   none is begun yet, after a seek to 2030-01-01T00:00:00Z\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%s\nwant %s", got, want)
		}
	}
	at := func(hour int) source.Segment {
		return source.SegmentAt(time.Date(2026, 1, 31, hour, 0, 0, 0, time.UTC))
	}
	s.Position.Skipped = []offsets.Stretch{{After: at(2), To: source.Before(at(4))},
		{After: at(9), To: at(10), From: "1769857800000000000.0000000000"}}
	want := "\nskipped   by bridge seek, what the feed has after 2026/01/31/0200 and before 2026/01/31/0400; " +
		"after 2026/01/31/0900 and before 2026-01-31T11:10:00Z\nresolved "
	if got := s.Text(); !strings.Contains(got, want) {
		t.Errorf("%s\nwant %s", got, want)
	}
	s.Position.Seek.To = "earliest"
	if got := s.Text(); !strings.Contains(got, "to earliest\n") {
		t.Errorf("%s", got)
	}
}

// An error that ended an instance is committed with the last commit.
func TestTextOfTheLastError(t *testing.T) {
	met := time.Date(2026, 1, 31, 13, 0, 0, 0, time.UTC)
	s := &Status{
		Leases: []Lease{{Committed: &met}},
		Errors: []Failure{{Failure: offsets.Failure{Time: met, Error: "no route"}}},
	}
	if got, want := s.Text(), "2026-01-31T13:00:00Z, with its last commit: no route\n"; !strings.HasSuffix(got, want) {
		t.Errorf("%s\nwant %s", got, want)
	}
}

// When all is delivered, nothing is ahead, also of a segment that is fresh.
func TestTextOfAFreshSegment(t *testing.T) {
	seg := source.SegmentAt(time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC))
	for _, ahead := range []*int64{nil, new(int64)} {
		s := Status{Started: true, Verdict: Verdict{Code: UpToDate, Text: AllWell}, Lag: Lag{Ahead: ahead},
			Position: Position{Current: seg.String()}}
		if got := s.Text(); !strings.Contains(got, "ahead     nothing: all is delivered\n") {
			t.Error(got)
		}
	}
}
