package history

import (
	"testing"
	"time"

	"blobfeed/offsets"
	"blobfeed/source"
)

// After a reset there is no frontier for a while, and instances may run on.
func TestWatchAfterAReset(t *testing.T) {
	var h History
	w := Watcher{View: offsets.NewView("test.offsets", 1)}
	if reported, err := h.look(t.Context(), w, new(source.Segment), new(time.Time), true); reported || err != nil {
		t.Errorf("reported %v, %v", reported, err)
	}
}
