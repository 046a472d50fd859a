package main

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"blobfeed/bridge"
	"blobfeed/internal/config"
	"blobfeed/internal/feedsim"
	"blobfeed/internal/progress"
	"blobfeed/internal/setup"
	"blobfeed/verify/judge"
)

// Of an open segment what the cursors cover has to be there, and not what came to the feed since. What
// retention took from the topic's begin need not be, and what it took from the feed can't be compared.
func TestVerifyOpenSegment(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	feed, err := feedsim.New(feedsim.Dir(dir), feedsim.Spec{Shards: 3, EventsPerSegment: 200, BlockEvents: 10})
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(feed.Open(ctx), feed.Append(ctx, 200, nil), feed.Next(ctx), feed.Append(ctx, 100, nil))
	if err != nil {
		t.Fatal(err)
	}
	cl := delivered(t, dir)
	run := func(code int) (judge.Report, map[string]string) {
		t.Helper()
		have, stdout, stderr := call(t, "verify", "--feed", "--output", "json")
		if have != code {
			t.Fatalf("exit code %d: %s%s", have, stdout, stderr)
		}
		return statusFrom(t, stdout)
	}
	if r, _ := run(exitOK); r.Feed.Required != r.Records || r.Feed.Given != r.Records || r.Records == 0 {
		t.Errorf("%+v of %d", r.Feed, r.Records)
	}
	if err := feed.Append(ctx, 50, nil); err != nil {
		t.Fatal(err)
	}
	if r, _ := run(exitOK); r.Feed.Required != r.Records || r.Feed.Given <= r.Records {
		t.Errorf("%+v of %d", r.Feed, r.Records)
	}
	// Up to the 20th record of each partition, which is in the first segment.
	cut := kadm.Offsets{}
	for p := range int32(3) {
		cut.Add(kadm.Offset{Topic: written, Partition: p, At: 20})
	}
	if _, err := kadm.NewClient(cl).DeleteRecords(ctx, cut); err != nil {
		t.Fatal(err)
	}
	r, _ := run(exitOK)
	if len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "the start of the partition is deleted") ||
		r.Feed.Required == 0 ||
		r.Feed.Required >= r.Records {
		t.Errorf("%q, %+v of %d", r.Notes, r.Feed, r.Records)
	}
}

// While the bridge writes, verify finds no fault in what is half way.
func TestVerifyLive(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	feed, err := feedsim.New(feedsim.Dir(dir), feedsim.Spec{Shards: 3, EventsPerSegment: 200, BlockEvents: 5})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(feed.Open(ctx), feed.Append(ctx, 200, nil), feed.Next(ctx)); err != nil {
		t.Fatal(err)
	}
	delivered(t, dir, "POLL_INTERVAL=20ms", "COMMIT_INTERVAL=20ms")
	c, err := config.Load(true)
	if err != nil {
		t.Fatal(err)
	}
	o, err := setup.Options(c, setup.Observe{})
	if err != nil {
		t.Fatal(err)
	}
	log, shown := progress.New(c, io.Discard)
	o.Log, o.Observer = log, bridge.Observers{shown}
	stop, cancel := context.WithCancel(ctx)
	var working sync.WaitGroup
	working.Go(func() {
		if err := bridge.New(o).Run(stop, ctx); err != nil {
			t.Error(err)
		}
	})
	working.Go(func() {
		tick := time.NewTicker(20 * time.Millisecond) // a feed that grows faster than verify reads would never end
		defer tick.Stop()
		for n := 0; stop.Err() == nil; n++ {
			<-tick.C
			err := feed.Append(ctx, 10, nil)
			if n%10 == 9 {
				err = errors.Join(err, feed.Next(ctx))
			}
			if err != nil {
				t.Error(err)
				return
			}
		}
	})
	var first, last int64
	limit := time.Now().Add(time.Minute)
	// Joining the group takes longer than a few rounds.
	for i := 0; i < 8 || last <= first && time.Now().Before(limit); i++ {
		code, stdout, stderr := call(t, "verify", "--feed", "--output", "json")
		if code != exitOK {
			t.Errorf("exit code %d: %s%s", code, stdout, stderr)
			break
		}
		r, _ := statusFrom(t, stdout)
		if last = r.Records; i == 0 {
			first = last
		}
	}
	cancel()
	working.Wait()
	if last <= first {
		t.Errorf("%d records, then %d: nothing was written meanwhile", first, last)
	}
}

// A topic that got partitions, once and again, fails as it is, and holds with --grown-from.
func TestVerifyGrownTopic(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	feed, err := feedsim.New(feedsim.Dir(dir), feedsim.Spec{Shards: 3, EventsPerSegment: 200, BlockEvents: 10})
	if err != nil {
		t.Fatal(err)
	}
	grow := func() {
		t.Helper()
		if err := errors.Join(feed.Append(ctx, 200, nil), feed.Next(ctx)); err != nil {
			t.Fatal(err)
		}
	}
	if err := feed.Open(ctx); err != nil {
		t.Fatal(err)
	}
	grow()
	cl := delivered(t, dir)
	if _, err := kadm.NewClient(cl).CreatePartitions(ctx, 2, written); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the open segment keeps the old count
		grow()
		if code, _, stderr := call(t, "run", "--once"); code != exitOK {
			t.Fatalf("exit code %d: %s", code, stderr)
		}
	}
	code, stdout, stderr := call(t, "verify", "--feed")
	if code != exitBroken || !strings.Contains(stdout, "give all former numbers of partitions with --grown-from") ||
		!strings.Contains(stderr, "partition, resolved") {
		t.Errorf("exit code %d: %s%s", code, stdout, stderr)
	}
	// A second growth: keys may be where three, or five, or seven put them.
	if _, err := kadm.NewClient(cl).CreatePartitions(ctx, 2, written); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		grow()
		if code, _, stderr := call(t, "run", "--once"); code != exitOK {
			t.Fatalf("exit code %d: %s", code, stderr)
		}
	}
	code, stdout, stderr = call(t, "verify", "--feed", "--grown-from", "3,5")
	if code != exitOK {
		t.Errorf("exit code %d: %s%s", code, stdout, stderr)
	}
	for args, want := range map[string]int{
		"3": exitBroken, "2,5": exitBroken, // not to what no count explains
		"9": exitSettings, "3,x": exitUsage, "0": exitUsage,
	} {
		if code, _, stderr := call(t, "verify", "--feed", "--grown-from", args); code != want ||
			want == exitBroken && !strings.Contains(stderr, "partition") {
			t.Errorf("%s: exit code %d: %s", args, code, stderr)
		}
	}
}
