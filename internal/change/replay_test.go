package change

import (
	"strings"
	"testing"
)

// A replay from a time in the future would wait for it: that is a typing error in the year.
func TestReplayOfTheFuture(t *testing.T) {
	r := Replay{From: "2101-01-01", To: "2102-01-01", Topic: "again"}
	if err := r.Check(); err == nil || !strings.Contains(err.Error(), "is in the future") {
		t.Error(err)
	}
	if r.From = "2020-01-01"; r.Check() != nil {
		t.Errorf("to the future: %v", r.Check())
	}
}

// A replay whose end is in the future says that it waits for the feed.
func TestReplayWaits(t *testing.T) {
	for to, waits := range map[string]bool{"2020-05-27": false, "2100-01-01": true} {
		if r := (&Replay{From: "earliest", To: to, Topic: "again"}); r.Check() != nil || r.Waits() != waits {
			t.Errorf("--to %s: %v, waits: %t", to, r.Check(), r.Waits())
		}
	}
}
