package main

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"blobfeed/bridge"
	"blobfeed/internal/testing/feedsim"
	"blobfeed/verify/judge"
)

// Of an open segment what the cursors cover has to be there, and not what came to the feed since. What
// retention took from the topic's begin need not be, and what it took from the feed can't be compared.
func TestVerifyOpenSegment(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	dir, feed := openFeed(t, feedsim.Spec{Shards: 3, EventsPerSegment: 200, BlockEvents: 10})
	if err := errors.Join(feed.Append(ctx, 200, nil), feed.Next(ctx), feed.Append(ctx, 100, nil)); err != nil {
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
	const first = " up to segment 2026/01/01/0000"
	if len(r.Notes) != 1 || r.Feed.Required == 0 || r.Feed.Required >= r.Records ||
		!strings.Contains(r.Notes[0], "from the topic: partition 0"+first+", partition 1"+first+", partition 2"+first) {
		t.Errorf("%q, %+v of %d", r.Notes, r.Feed, r.Records)
	}
}

// While the bridge writes, verify finds no fault in what is half way.
func TestVerifyLive(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	dir, feed := openFeed(t, feedsim.Spec{Shards: 3, EventsPerSegment: 200, BlockEvents: 5})
	if err := errors.Join(feed.Append(ctx, 200, nil), feed.Next(ctx)); err != nil {
		t.Fatal(err)
	}
	delivered(t, dir, "POLL_INTERVAL=20ms", "COMMIT_INTERVAL=20ms")
	o := bridgeOptions(t)
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

// Verify finds out by itself that a topic got partitions, once and again, as soon as they are added, and when retention
// has deleted the marker behind which they were used.
func TestVerifyGrownTopic(t *testing.T) {
	t.Parallel()
	for _, settings := range []string{"RESOLVED_TO=inline", "RESOLVED_TO=topic", "RESOLVED_TO=off",
		"DELIVERY=at_least_once"} {
		t.Run(settings, func(t *testing.T) {
			ctx := t.Context()
			dir, feed := openFeed(t, feedsim.Spec{Shards: 3, EventsPerSegment: 200, BlockEvents: 10})
			grow := func() {
				t.Helper()
				if err := errors.Join(feed.Append(ctx, 200, nil), feed.Next(ctx)); err != nil {
					t.Fatal(err)
				}
			}
			grow()
			cl := delivered(t, dir, settings)
			admin := kadm.NewClient(cl)
			holds := func(when, note string) {
				t.Helper()
				for _, args := range [][]string{{"verify"}, {"verify", "--feed"}, {"verify", "--bounded"}} {
					code, stdout, stderr := call(t, args...)
					if code != exitOK || !strings.Contains(stdout, note) {
						t.Errorf("%s, %v: exit code %d, want note %q: %s%s", when, args, code, note, stdout, stderr)
					}
				}
			}
			for _, want := range []string{", and 5 behind the marker ", ", and 7 behind the marker "} {
				if _, err := admin.CreatePartitions(ctx, 2, written); err != nil {
					t.Fatal(err)
				}
				holds("partitions were added", "2 partitions not in use yet")
				for range 2 { // the open segment keeps the old count
					grow()
					if code, _, stderr := call(t, "run", "--once"); code != exitOK {
						t.Fatalf("exit code %d: %s", code, stderr)
					}
				}
				if settings == "RESOLVED_TO=off" {
					return
				}
				holds("they are used", want)
			}
			if settings != "RESOLVED_TO=inline" {
				return
			}
			cut := kadm.Offsets{}
			for p := range int32(4) {
				cut.Add(kadm.Offset{Topic: written, Partition: p + 3, At: 10})
			}
			cut.Add(kadm.Offset{Topic: written, Partition: 1, At: 1})
			if _, err := admin.DeleteRecords(ctx, cut); err != nil {
				t.Fatal(err)
			}
			holds("the first markers are deleted", " at the latest behind the marker ")
		})
	}
}
