//go:build integration

package integration

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"blobfeed/internal/testing/arrivals"
	"blobfeed/internal/testing/feedsim"
	"blobfeed/verify"
)

// A feed in blob storage grows while the bridge runs: appended events come, a finalized segment is resolved, SIGTERM
// ends the program in order.
func TestLive(t *testing.T) {
	t.Parallel()
	sink, settings := azurite(t)
	name, topic := names(t, shared.KafkaBrokers, -1)
	ctx := t.Context()
	complete, resolved := arrivals.New(), verify.NewResolved(partitions)
	notes := []verify.Validator{verify.NewUnique(), complete, verify.NewOrder(), resolved}
	expect := func(e feedsim.Event) { complete.Expect(e.ID) }
	feed, err := feedsim.New(sink, feedsim.Spec{Seed: 7, Shards: 3, EventsPerSegment: 200, Blobs: 50,
		Versions: []int{6}})
	if err != nil {
		t.Fatal(err)
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(feed.Open(ctx))
	must(feed.Append(ctx, 30, expect))
	p := start(t, []string{"run"}, append(settings, "NAME="+name, "TOPIC="+topic, "EVENTS=all",
		"KAFKA_BROKERS="+strings.Join(shared.KafkaBrokers, ","),
		"POLL_INTERVAL=1s", "DEBUG=quiet_interval=1s", "COMMIT_INTERVAL=200ms")...)
	c := consume(t, shared.KafkaBrokers, topic, notes...)
	delivered := func() bool { return complete.Left() == 0 }
	c.until(t, 30*time.Second, "the first events", delivered)
	for range 3 {
		must(feed.Append(ctx, 20, expect))
		c.until(t, 10*time.Second, "appended events", delivered)
	}
	feed.Roll() // a new chunk in each shard
	must(feed.Append(ctx, 20, expect))
	c.until(t, 10*time.Second, "events of new chunks", delivered)
	if resolved.Checked() > 0 {
		t.Error("an open segment was resolved")
	}
	must(feed.Next(ctx))
	must(feed.Append(ctx, 20, expect))
	c.until(t, 10*time.Second, "the marker of the finalized segment, and events of the next",
		func() bool { return delivered() && c.marks == partitions })
	p.signal(syscall.SIGTERM)
	if code := p.wait(t, 15*time.Second); code != 0 {
		t.Errorf("exit code %d", code)
	}
	// The program is gone. What comes meanwhile is delivered by --once, the open segment's events included.
	must(feed.Append(ctx, 20, expect))
	runOnce(t, append(settings, "NAME="+name, "TOPIC="+topic, "EVENTS=all",
		"KAFKA_BROKERS="+strings.Join(shared.KafkaBrokers, ","))...)
	c.drain(t)
	c.check(t)
}
