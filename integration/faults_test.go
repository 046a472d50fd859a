//go:build integration

package integration

import (
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"blobfeed/integration/faults"
	"blobfeed/integration/stack"
	"blobfeed/internal/testing/arrivals"
	"blobfeed/internal/testing/feedsim"
	"blobfeed/verify"
)

// misbehaving returns a feed in Azurite, and the settings with which the bridge reads it through a proxy.
func misbehaving(t *testing.T, o faults.Options) (feedsim.Sink, *faults.Proxy, []string) {
	t.Helper()
	account := takeAccount(t)
	sink, settings := account.feed(t)
	where, ok := strings.CutPrefix(settings[0], "SOURCE_URL=")
	target, err := url.Parse(where)
	if !ok || err != nil {
		t.Fatal(settings[0], err)
	}
	o.Target, o.Account, o.Key = target, account.name, stack.AzuriteKey
	p := faults.New(o)
	server := httptest.NewServer(p)
	t.Cleanup(func() {
		server.CloseClientConnections() // which also ends stalls
		server.Close()
	})
	settings[0] = "SOURCE_URL=" + server.URL + target.Path
	return sink, p, settings
}

// fromEnv returns what the environment says, or a default.
func fromEnv[T any](t *testing.T, name string, parse func(string) (T, error), otherwise T) T {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	v, err := parse(text)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return v
}

func parseSeed(s string) (uint64, error) { return strconv.ParseUint(s, 10, 64) }

const (
	second       = 200 * time.Millisecond // of the feed's time, at the wall
	segmentTicks = 20                     // of a segment, on average
)

// The service misbehaves while the feed grows, torn at random bytes, with new chunks, late shards, other numbers of
// shards and segments that are finalized while they are read: the bridge delivers what is in the feed, once, and goes
// on. FAULTS_DURATION is the feed's time, FAULTS_SEED repeats a run's choices, FAULTS_RATE is the share of requests
// that fail, FAULTS_STALLS adds answers that never come or end.
func TestLiveFaults(t *testing.T) {
	t.Parallel()
	duration := fromEnv(t, "FAULTS_DURATION", time.ParseDuration, 3*time.Minute)
	seed := fromEnv(t, "FAULTS_SEED", parseSeed, uint64(time.Now().UnixNano()))
	rate := fromEnv(t, "FAULTS_RATE", func(s string) (float64, error) { return strconv.ParseFloat(s, 64) }, 0.05)
	stalls := fromEnv(t, "FAULTS_STALLS", strconv.ParseBool, false)
	t.Logf("FAULTS_SEED=%d", seed)

	var open atomic.Pointer[string] // the segment whose listings may be stale
	// Azure's listings are consistent: one that is made after a segment was finalized has all of it, and what a bridge
	// reads then is the end (I7). So no stale one of a finalized segment; of an open one, and of the index, they do
	// come.
	o := faults.Options{Seed: seed, Rate: rate, Stalls: stalls, Spare: func(k faults.Kind, r *http.Request) bool {
		prefix := r.URL.Query().Get("prefix")
		return k == faults.StaleListing && strings.HasPrefix(prefix, "log/") && (open.Load() == nil ||
			!strings.HasSuffix(prefix, *open.Load()+"/"))
	}}
	sink, proxy, settings := misbehaving(t, o)
	name, topic := names(t, shared.KafkaBrokers, -1)
	settings = append(settings, "NAME="+name, "TOPIC="+topic, "EVENTS=all",
		"KAFKA_BROKERS="+strings.Join(shared.KafkaBrokers, ","),
		"POLL_INTERVAL=50ms", "COMMIT_INTERVAL=200ms", "DEBUG=quiet_interval=50ms,read_size=64KiB",
		"NETWORK_TIMEOUT=1700ms", "LOG_FORMAT=json")
	complete, resolved := arrivals.New(), verify.NewResolved(partitions)
	notes := []verify.Validator{verify.NewUnique(), complete, verify.NewOrder(), verify.NewSequence(), resolved}
	expect := func(e feedsim.Event) { complete.Expect(e.ID) }

	ctx, rng := t.Context(), rand.New(rand.NewPCG(seed, 5))
	tear := feedsim.NewTear(sink, seed)
	feed, err := feedsim.New(tear, feedsim.Spec{
		Seed: seed, EventsPerSegment: 4000, BlockEvents: 20, Blobs: 300, HotShare: 0.2, Versions: []int{6, 5},
		LateShards: 1,
		ShardsOf:   func(segment int) int { return [...]int{3, 3, 4, 2, 5}[segment%5] },
	})
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(err)
	opened := func() {
		begun := feed.Segment().Format("2006/01/02/1504")
		open.Store(&begun)
	}
	must(feed.Open(ctx))
	opened()
	p := start(t, []string{"run"}, settings...)
	c := consume(t, shared.KafkaBrokers, topic, notes...)
	began := time.Now()
	for tick := range int(duration / time.Second) {
		// Waiting for the consumer is the clock: it returns when there are records, so the rest of the second is read,
		// too.
		for due := began.Add(time.Duration(tick+1) * second); time.Now().Before(due); {
			c.poll(ctx, time.Until(due))
		}
		ended(t, p)
		switch n := rng.IntN(segmentTicks * 4); {
		case n < 4:
			open.Store(nil)
			must(feed.Next(ctx))
			opened()
		case n < 12:
			must(feed.Reveal(ctx))
		case n < 24:
			feed.Roll(rng.IntN(5))
		}
		must(feed.Append(ctx, rng.IntN(80), expect))
	}
	must(feed.Reveal(ctx))
	must(tear.Flush(ctx))
	finished := feed.Summary().Finalized
	limit := time.Now().Add(2 * time.Minute) // the bridge pauses up to 30 s when the same thing fails again and again
	if stalls {
		limit = limit.Add(3 * time.Minute) // and waits for answers
	}
	for complete.Left() > 0 || c.marks < int64(finished*partitions) {
		ended(t, p)
		if time.Now().After(limit) {
			t.Errorf("%d events and %d of %d markers are missing", complete.Left(), int64(finished*partitions)-c.marks,
				finished*partitions)
			break
		}
		c.poll(ctx, 500*time.Millisecond)
	}
	took, stats := time.Since(began), proxy.Stats()
	t.Logf("%s of the feed in %s: %v", duration, took.Round(time.Millisecond), stats)
	sum := feed.Summary()
	t.Logf("%d events in %d segments, %d chunks, %d blocks, %d bytes; %d records, %d markers; %d errors were logged",
		sum.Events, sum.Segments, sum.Chunks, sum.Blocks, sum.Bytes, c.data, c.marks,
		strings.Count(p.log.String(), `"msg":"retrying"`))
	for _, k := range proxy.Kinds() {
		// A stall takes the reader's patience, and then there are few requests: with stalls only they have to come.
		if stall := k == faults.StalledHead || k == faults.StalledBody; stats.Faults[k] == 0 && rate >= 0.05 &&
			stall == stalls {
			t.Errorf("no request was hit by %s", k)
		}
	}
	proxy.SetRate(0)
	p.signal(syscall.SIGTERM)
	if code := p.wait(t, 15*time.Second); code != 0 {
		t.Errorf("exit code %d", code)
	}
	runOnce(t, settings...) // what was lost stays lost; what comes twice would come now
	c.drain(t)
	c.check(t)
}

// ended fails the test if the program has.
func ended(t *testing.T, p *program) {
	t.Helper()
	select {
	case <-p.done:
		t.Fatalf("the program has ended: %v", p.err)
	default:
	}
}
