package status

import (
	"strings"
	"testing"
	"time"

	"blobfeed/offsets"
)

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
