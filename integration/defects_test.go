//go:build integration

package integration

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"blobfeed/integration/faults"
	"blobfeed/integration/feedsim"
	"blobfeed/verify"
)

// A listing that was cached somewhere on the way comes again after the segment was finalized. It ends at a whole block, so it
// looks like the end; the chunks go on behind it. Their events must come.
func TestStaleEnd(t *testing.T) {
	stale := func(k faults.Kind, r *http.Request) bool {
		return k != faults.StaleListing || !strings.HasPrefix(r.URL.Query().Get("prefix"), "log/")
	}
	sink, proxy, settings := misbehaving(t, faults.Options{Seed: 1, Spare: stale})
	name, topic := names(t, shared.KafkaBrokers, -1)
	complete := verify.NewComplete()
	expect := func(e feedsim.Event) { complete.Expect(e.ID) }
	feed, err := feedsim.New(sink, feedsim.Spec{Seed: 3, Shards: 3, Versions: []int{6}})
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(err)
	must(feed.Open(t.Context()))
	p := start(t, []string{"run"}, append(settings, "NAME="+name, "TOPIC="+topic, "EVENTS=all", "KAFKA_BROKERS="+strings.Join(shared.KafkaBrokers, ","),
		"POLL_INTERVAL=200ms", "COMMIT_INTERVAL=50ms")...)
	c := consume(t, shared.KafkaBrokers, topic, complete)
	for range 2 {
		must(feed.Append(t.Context(), 30, expect))
		c.until(t, 30*time.Second, "events", func() bool { return complete.Left() == 0 })
	}
	must(feed.Append(t.Context(), 30, expect))
	proxy.SetRate(1)
	must(feed.Next(t.Context()))
	must(feed.Append(t.Context(), 30, expect))
	c.until(t, time.Minute, "stale listings", func() bool { return proxy.Stats().Faults[faults.StaleListing] > 10 || c.marks == partitions })
	proxy.SetRate(0)
	c.until(t, time.Minute, "the markers of the first segment", func() bool { return c.marks == partitions })
	p.signal(syscall.SIGTERM)
	p.wait(t, 15*time.Second)
	runOnce(t, append(settings, "NAME="+name, "TOPIC="+topic, "EVENTS=all", "KAFKA_BROKERS="+strings.Join(shared.KafkaBrokers, ","))...)
	c.drain(t)
	c.check(t)
}

// One request for the watermark is refused as if the blob did not exist: --once must not take that for an empty feed, or for
// its end.
func TestOnceWithoutWatermark(t *testing.T) {
	for hit := range int64(6) {
		t.Run(fmt.Sprint("request", hit+1), func(t *testing.T) {
			var asked atomic.Int64
			sink, proxy, settings := misbehaving(t, faults.Options{Rate: 1, Spare: func(k faults.Kind, r *http.Request) bool {
				return k != faults.BlobNotFound || !strings.HasSuffix(r.URL.Path, "/meta/segments.json") || asked.Add(1) != hit+1
			}})
			name, topic := names(t, shared.KafkaBrokers, -1)
			complete := verify.NewComplete()
			if err := feedsim.Write(t.Context(), sink, feedsim.Spec{Seed: 3, Segments: 4, Shards: 3, EventsPerSegment: 100, Versions: []int{6}},
				func(e feedsim.Event) { complete.Expect(e.ID) }); err != nil {
				t.Fatal(err)
			}
			runOnce(t, append(settings, "NAME="+name, "TOPIC="+topic, "EVENTS=all", "KAFKA_BROKERS="+strings.Join(shared.KafkaBrokers, ","))...)
			c := consume(t, shared.KafkaBrokers, topic, complete)
			c.drain(t)
			c.check(t)
			t.Logf("%v", proxy.Stats())
		})
	}
}
