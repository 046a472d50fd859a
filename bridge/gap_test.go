package bridge

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"blobfeed/integration/feedsim"
	"blobfeed/verify"
)

// gaps notes the headers of markers that tell of a gap.
type gaps struct{ seen []string }

func (g *gaps) Note(r verify.Record) {
	if gap := r.Header("gap"); r.Key == nil && gap != nil {
		g.seen = append(g.seen, string(gap))
	}
}

func (g *gaps) Failures() []verify.Failure { return nil }

// Retention removes the segment that was being read. That stops the bridge, which names both ends; or it goes on at the
// oldest segment, as it is told, and the next marker tells consumers.
func TestHistoryLost(t *testing.T) {
	ctx, feed := t.Context(), t.TempDir()
	live, err := feedsim.New(feedsim.Dir(feed), feedsim.Spec{EventsPerSegment: 100})
	if err != nil {
		t.Fatal(err)
	}
	c := broker(t)
	o, _ := options(t, c, feed)
	if err := errors.Join(live.Open(ctx), live.Append(ctx, 50, nil)); err != nil {
		t.Fatal(err)
	}
	if err := runOnce(t, o); err != nil {
		t.Fatal(err)
	}
	// The bridge is away for a long time.
	if err := errors.Join(live.Next(ctx), live.Append(ctx, 30, nil), live.Next(ctx), live.Append(ctx, 20, nil), live.Finalize(ctx)); err != nil {
		t.Fatal(err)
	}
	for _, segment := range []string{"2026/01/01/0000", "2026/01/01/0100"} {
		for _, part := range []string{"idx/segments/", "log/00/"} {
			if err := os.RemoveAll(filepath.Join(feed, part+segment)); err != nil {
				t.Fatal(err)
			}
		}
	}
	err = runOnce(t, o)
	var gap *GapError
	if !errors.As(err, &gap) || gap.At.String() != "2026/01/01/0000" || gap.Oldest.String() != "2026/01/01/0200" {
		t.Fatalf("err = %v", err)
	}
	o.SkipGaps = true
	if err := runOnce(t, o); err != nil {
		t.Fatal(err)
	}
	seen := &gaps{}
	data, markers := consume(t, c, append(promises(), seen)...)
	if data != 70 || markers != partitions || len(seen.seen) != partitions || seen.seen[0] != "2026/01/01/0000 2026/01/01/0200" {
		t.Errorf("%d records, %d markers, gaps %q", data, markers, seen.seen)
	}
}
