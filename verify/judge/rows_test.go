package judge

import (
	"testing"

	"blobfeed/verify"
)

// Rows are no events: without a state, the number of events says which segments are delivered.
func TestRowsAreNoEvents(t *testing.T) {
	c := &comparison{Replay: verify.NewReplay(verify.ReplayExact), extent: &extent{}}
	c.Note(verify.Record{Key: []byte("c/b"), Headers: []verify.Header{{Key: "scan", Value: []byte("s1")}}})
	if c.noted != 0 {
		t.Errorf("%d events", c.noted)
	}
}
