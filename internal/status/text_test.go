package status

import (
	"strings"
	"testing"
	"time"

	"blobfeed/offsets"
)

// How late something is shows in seconds while they matter.
func TestSpan(t *testing.T) {
	for d, want := range map[time.Duration]string{
		28400 * time.Millisecond: "28s", 209 * time.Second: "3m29s", 3600 * time.Second: "1h0m", 77*time.Minute + 31*time.Second: "1h18m", 49 * time.Hour: "2 days",
	} {
		if got := Span(d); got != want {
			t.Errorf("%s: %s, want %s", d, got, want)
		}
	}
}

// An error stays in the report until there is another, and the report says whether the lease has gone on since.
func TestTextSaysHowOldAnErrorIs(t *testing.T) {
	met := time.Date(2026, 1, 31, 13, 0, 0, 0, time.UTC)
	committed := met.Add(41 * time.Second)
	s := &Status{Leases: []Lease{{Committed: &committed}}, Errors: []Failure{{Failure: offsets.Failure{Time: met, Error: "no route"}}}}
	if got, want := s.Text(), "last error of lease 0 at 2026-01-31T13:00:00Z, 41s before its last commit: no route\n"; !strings.HasSuffix(got, want) {
		t.Errorf("%s\nwant %s", got, want)
	}
}
