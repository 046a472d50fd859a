package history

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"blobfeed/internal/testing/feedsim"
	"blobfeed/offsets"
	"blobfeed/source"
	"blobfeed/source/dir"
)

// simulated writes a simulated feed into a folder, and returns its store.
func simulated(t *testing.T, root string, spec feedsim.Spec) source.Store {
	t.Helper()
	if err := feedsim.Write(t.Context(), feedsim.Dir(root), spec, nil); err != nil {
		t.Fatal(err)
	}
	store, err := dir.New(root)
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// History is lost if something was between what is delivered and the oldest segment of the feed.
func TestLost(t *testing.T) {
	t.Parallel()
	hour := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	root := t.TempDir()
	store := simulated(t, root, feedsim.Spec{Segments: 3, EventsPerSegment: 10})
	if err := os.RemoveAll(filepath.Join(root, "idx/segments/2026/01/01/0000")); err != nil {
		t.Fatal(err)
	}
	h := New(source.New(store, source.Options{}), time.Second)
	gone, there := source.SegmentAt(hour), source.SegmentAt(hour.Add(time.Hour))
	for name, tc := range map[string]struct {
		f    offsets.Frontier
		lost bool
	}{
		"the current segment":          {offsets.Frontier{Current: gone}, true},
		"not the current segment":      {offsets.Frontier{Completed: gone, Current: there}, false},
		"after the completed segment":  {offsets.Frontier{Completed: gone, Ends: hour.Add(time.Hour / 2)}, true},
		"the oldest follows at once":   {offsets.Frontier{Completed: gone, Ends: hour.Add(time.Hour)}, false},
		"the completed one is there":   {offsets.Frontier{Completed: there, Ends: hour.Add(2 * time.Hour)}, false},
		"nothing is delivered":         {offsets.Frontier{}, false},
		"a seek skipped it":            {offsets.Frontier{Completed: gone, Seek: &offsets.Seek{}}, false},
		"it is recorded":               {offsets.Frontier{Completed: gone, Gap: &offsets.Gap{To: there}}, false},
		"the bridge has ended":         {offsets.Frontier{Completed: gone, Ended: true}, false},
		"a move decides what is next":  {offsets.Frontier{Completed: gone, Moving: true}, false},
		"a scan decides what is next":  {offsets.Frontier{Completed: gone, Scan: &offsets.Scan{ID: "1"}}, false},
		"delivery begins behind a gap": {offsets.Frontier{Version: 2, Completed: gone}, false},
	} {
		err := h.LostAt(t.Context(), &tc.f)
		var gap *GapError
		if got := errors.As(err, &gap); got != tc.lost || err != nil && !got {
			t.Errorf("%s: %v", name, err)
		}
		if gap != nil && gap.After != (tc.f.Completed == gone) {
			t.Errorf("%s: %+v", name, gap)
		}
	}
}

// The message names what is gone.
func TestGapError(t *testing.T) {
	at, oldest := source.SegmentAt(time.Unix(0, 0)), source.SegmentAt(time.Unix(3600, 0))
	for want, gap := range map[string]*GapError{
		"the next to read is segment 1970/01/01/0000, chunk c, which": {At: at, Chunk: "c", Oldest: oldest},
		"is what followed segment 1970/01/01/0000, which":             {At: at, After: true, Oldest: oldest},
		"segment 1970/01/01/0100 now, where the bridge continues":     {At: at, Oldest: oldest, Recorded: true},
	} {
		if !strings.Contains(gap.Error(), want) {
			t.Errorf("%q, want %q", gap, want)
		}
	}
}
