//go:build integration

package integration

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"blobfeed/integration/faults"
	"blobfeed/internal/testing/arrivals"
	"blobfeed/internal/testing/feedsim"
)

// What a bridge asks of the storage service while it follows an open segment: requests are what a quiet account pays
// for. Azure appends each minute, and the default is to look each 15 s, so there is an append each fourth poll.
func TestRequests(t *testing.T) {
	t.Parallel()
	const (
		shards                  = 3
		poll                    = 250 * time.Millisecond
		polls                   = 20
		appendEach, defaultPoll = 4, 15 * time.Second
		// Each ten minutes, and so once here, the bridge looks how far back the feed reaches, and at every fourth poll
		// how far forth.
		reachListings, reachWatermarks, forthEach = 4, 2, 4
	)
	sink, proxy, settings := misbehaving(t, faults.Options{})
	name, topic := names(t, shared.KafkaBrokers, -1)
	complete := arrivals.New()
	expect := func(e feedsim.Event) { complete.Expect(e.ID) }
	feed, err := feedsim.New(sink, feedsim.Spec{Seed: 3, Shards: shards, Versions: []int{6}})
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(err)
	must(feed.Open(t.Context()))
	must(feed.Append(t.Context(), 60, expect))
	settings = append(settings, "NAME="+name, "TOPIC="+topic, "EVENTS=all",
		"KAFKA_BROKERS="+strings.Join(shared.KafkaBrokers, ","),
		"POLL_INTERVAL="+poll.String(), "DEBUG=quiet_interval="+poll.String(), "COMMIT_INTERVAL=50ms")
	p := start(t, []string{"run"}, settings...)
	c := consume(t, shared.KafkaBrokers, topic, complete)
	delivered := func() bool { return complete.Left() == 0 }
	c.until(t, 30*time.Second, "the first events", delivered)

	// measure lets time pass while the bridge does what step asks for, and returns what it asked for, and in how many
	// polls.
	measure := func(what string, step func()) (faults.Stats, float64) {
		t.Helper()
		before, began := proxy.Stats(), time.Now()
		for n := range polls {
			if n%appendEach == 0 {
				step()
			}
			for due := began.Add(time.Duration(n+1) * poll); time.Now().Before(due); {
				c.poll(t.Context(), time.Until(due))
			}
		}
		c.until(t, 30*time.Second, "all events", delivered)
		n, s := float64(time.Since(began))/float64(poll), proxy.Stats().Since(before)
		for class, r := range s.Requests {
			if r > 0 {
				t.Logf("%s: %s: %d in %.1f polls, %.2f each, %.0f an hour at %s; %d bytes", what, faults.Class(class),
					r, n, float64(r)/n,
					float64(r)/n*float64(time.Hour/defaultPoll), defaultPoll, s.Bytes[class])
			}
		}
		return s, n
	}
	atMost := func(what string, s faults.Stats, class faults.Class, limit float64) {
		t.Helper()
		if n := s.Requests[class]; float64(n) > limit {
			t.Errorf("%s: %d requests for %s, want at most %.1f", what, n, class, limit)
		}
	}
	open := func(what string, s faults.Stats, polls float64) {
		t.Helper()
		if s.Requests[faults.Listing] < shards || s.Requests[faults.Manifest] == 0 {
			t.Errorf("%s: the segment is not followed: %v", what, s)
		}
		// A shard is listed once in a pass, and between two passes is the interval.
		atMost(what, s, faults.Listing, shards*(polls+1)+reachListings)
		// All leases share what one has read, for half an interval.
		atMost(what, s, faults.Manifest, 2*polls+1)
		atMost(what, s, faults.Watermark, polls/forthEach+reachWatermarks)
		atMost(what, s, faults.Other, 0)
	}

	s, n := measure("idle", func() {})
	open("idle", s, n)
	atMost("idle", s, faults.Chunk, 0) // the listing tells that nothing has come

	bytes, appends := feed.Summary().Bytes, 0
	s, n = measure("busy", func() {
		must(feed.Append(t.Context(), 30, expect))
		appends++
	})
	open("busy", s, n)
	atMost("busy", s, faults.Chunk, float64(shards*appends)) // one read of what is new; the header is known
	if want := feed.Summary().Bytes - bytes; s.Bytes[faults.Chunk] != want {
		t.Errorf("busy: %d bytes were read, %d are new", s.Bytes[faults.Chunk], want)
	}

	// The simulated segment lies in the past, so its time is over: what an idle account's last segment costs by
	// default.
	p.signal(syscall.SIGTERM)
	if code := p.wait(t, 15*time.Second); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	// The first pass finds what came while no bridge ran. The second one finds nothing, and the third waits an hour.
	must(feed.Append(t.Context(), 30, expect))
	start(t, []string{"run"}, append(settings, "DEBUG=quiet_interval=1h")...)
	c.until(t, 30*time.Second, "the events of the second run", delivered)
	s, n = measure("quiet", func() {})
	atMost("quiet", s, faults.Listing, 2*shards+reachListings) // all once more when nothing came for the first time
	atMost("quiet", s, faults.Manifest, 2*n+1)
	atMost("quiet", s, faults.Chunk, 0)

	must(feed.Finalize(t.Context()))
	c.until(t, 30*time.Second, "the markers", func() bool { return c.marks == partitions })
	s, n = measure("between segments", func() {})
	atMost("between segments", s, faults.Watermark, n+1+n/forthEach+reachWatermarks) // the owner of lease 0 asks
	// What it was about to read when the segment ended.
	atMost("between segments", s, faults.Listing, shards+reachListings)
	atMost("between segments", s, faults.Manifest, 1)
	atMost("between segments", s, faults.Chunk, 0)
}
