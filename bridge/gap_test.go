package bridge

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

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

// How much of the feed is older than the bridge's position is what retention may still remove without loss.
func TestHeadroom(t *testing.T) {
	feed := t.TempDir()
	if err := feedsim.Write(t.Context(), feedsim.Dir(feed), feedsim.Spec{Segments: 3, EventsPerSegment: 10, LeaveOpen: true}, nil); err != nil {
		t.Fatal(err)
	}
	o, _ := options(t, broker(t), feed)
	if err := runOnce(t, o); err != nil {
		t.Fatal(err)
	}
	o.Once = false
	r := o.Observer.(*recorder)
	for len(r.headroom) > 0 {
		<-r.headroom // of the run before, on its way
	}
	stop, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- New(o).Run(stop, t.Context()) }()
	if older := <-r.headroom; older != 2*time.Hour {
		t.Errorf("headroom is %s", older)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// Everything was delivered, and while nobody looked, retention removed the segment after that, unread.
func TestHistoryLostAfterTheLast(t *testing.T) {
	ctx, feed := t.Context(), t.TempDir()
	live, err := feedsim.New(feedsim.Dir(feed), feedsim.Spec{EventsPerSegment: 100})
	if err != nil {
		t.Fatal(err)
	}
	c := broker(t)
	o, _ := options(t, c, feed)
	if err := errors.Join(live.Open(ctx), live.Append(ctx, 50, nil), live.Finalize(ctx)); err != nil {
		t.Fatal(err)
	}
	if err := runOnce(t, o); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(live.Open(ctx), live.Append(ctx, 30, nil), live.Next(ctx), live.Append(ctx, 20, nil)); err != nil {
		t.Fatal(err)
	}
	for _, segment := range []string{"2026/01/01/0000", "2026/01/01/0100"} {
		for _, part := range []string{"idx/segments/", "log/00/"} {
			if err := os.RemoveAll(filepath.Join(feed, part+segment)); err != nil {
				t.Fatal(err)
			}
		}
	}
	var gap *GapError
	if err := runOnce(t, o); !errors.As(err, &gap) || gap.At.String() != "2026/01/01/0000" || gap.Oldest.String() != "2026/01/01/0200" {
		t.Fatalf("err = %v", err)
	}
	o.SkipGaps = true
	if err := runOnce(t, o); err != nil {
		t.Fatal(err)
	}
	if data, _ := consume(t, c, promises()...); data != 70 {
		t.Errorf("%d records", data)
	}
}
