package change

import (
	"path/filepath"
	"strings"
	"testing"

	"blobfeed/internal/config"
	"blobfeed/internal/testing/feedsim"
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

// A replay says that it waits for the feed, if its end is in the future, or behind what the feed has.
func TestReplayWaits(t *testing.T) {
	dir, err := filepath.Abs("../../testdata/real-2020")
	if err != nil {
		t.Fatal(err)
	}
	live := config.Defaults()
	live.SourceURL = "file://" + dir
	const complete = "the feed is not complete up to --to 2020-0"
	for to, want := range map[string]string{
		"2020-05-27": "", "2020-05-29T21:45:00Z": "", "2020-05-29T21:45:01Z": complete, "2020-07-01": complete,
		"2100-01-01": "--to 2100-01-01 is in the future",
	} {
		r := Replay{Live: live, From: "earliest", To: to, Topic: "again"}
		if text := r.Waits(t.Context()); r.Check() != nil || !strings.HasPrefix(text, want) ||
			(text == "") != (want == "") {
			t.Errorf("--to %s: %v, %s", to, r.Check(), text)
		}
	}
	for open, want := range map[bool]string{false: "", true: "the feed is not complete"} {
		root := t.TempDir() // with one segment, which begins at the start of 2026
		if err := feedsim.Write(t.Context(), feedsim.Dir(root), feedsim.Spec{LeaveOpen: open}, nil); err != nil {
			t.Fatal(err)
		}
		live.SourceURL = "file://" + root
		text := (&Replay{Live: live, To: "2026-01-01T00:30:00Z"}).Waits(t.Context())
		if !strings.HasPrefix(text, want) || (text == "") != (want == "") {
			t.Errorf("the last segment is open: %t: %q", open, text)
		}
	}
	live.SourceURL = "file://" + t.TempDir() // run reports what is wrong with it
	if text := (&Replay{Live: live, To: "2020-05-27"}).Waits(t.Context()); text != "" {
		t.Error(text)
	}
}
