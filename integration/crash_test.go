//go:build integration

package integration

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"blobfeed/integration/stack"
	"blobfeed/internal/testing/arrivals"
	"blobfeed/internal/testing/feedsim"
	"blobfeed/partitioner"
	"blobfeed/verify"
)

// million is the feed of the crash tests: it takes the bridge long enough to be killed in all sorts of moments.
var million = feedsim.Spec{Seed: 1, Segments: 20, Shards: 3, EventsPerSegment: 50_000, ChunksPerShard: 2, Blobs: 20_000,
	HotShare: 0.1, Versions: []int{5}}

// crashRun writes the million-event feed and returns settings to deliver it, and what must hold afterwards.
func crashRun(t *testing.T, brokers []string, replication int16) (settings []string, topic string,
	notes []verify.Validator) {
	t.Helper()
	dir := t.TempDir()
	complete := arrivals.New()
	if err := feedsim.Write(t.Context(), feedsim.Dir(dir), million, func(e feedsim.Event) {
		complete.Expect(e.ID)
	}); err != nil {
		t.Fatal(err)
	}
	name, topic := names(t, brokers, replication)
	settings = []string{"NAME=" + name, "TOPIC=" + topic, "EVENTS=all", "KAFKA_BROKERS=" + strings.Join(brokers, ","),
		"SOURCE_URL=" + fileURL(t, dir),
		"SESSION_TIMEOUT=1s", "COMMIT_INTERVAL=100ms", "POLL_INTERVAL=500ms",
		"DEBUG=txn_records=5000,quiet_interval=1s"}
	notes = []verify.Validator{verify.NewUnique(), complete, verify.NewOrder(),
		verify.NewResolved(partitions), verify.NewPartition(partitions, partitioner.Murmur2)}
	return settings, topic, notes
}

// seed is printed, and can be given back in CRASH_SEED to repeat the moments of a run.
func seed(t *testing.T) *rand.Rand {
	t.Helper()
	s := uint64(time.Now().UnixNano())
	if text := os.Getenv("CRASH_SEED"); text != "" {
		var err error
		if s, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("CRASH_SEED=%d", s)
	return rand.New(rand.NewPCG(s, 0))
}

// finish lets the program deliver the rest and checks all of it.
func finish(t *testing.T, c *consumer, settings []string) {
	t.Helper()
	runOnce(t, settings...)
	c.drain(t)
	c.check(t)
	if want := int64(million.Segments * partitions); c.marks != want {
		t.Errorf("%d markers, want %d", c.marks, want)
	}
}

// The bridge is killed at 20 random moments. Consumers see each event once and in order, and the markers keep their
// promise.
func TestKill(t *testing.T) {
	t.Parallel()
	rng := seed(t)
	settings, topic, notes := crashRun(t, shared.KafkaBrokers, -1)
	c := consume(t, shared.KafkaBrokers, topic, notes...)
	const kills = 20
	for i := range kills {
		p := start(t, []string{"run"}, settings...)
		// Kill it between two amounts of progress, so that it gets on, but never comes to the end.
		before := c.data
		c.until(t, time.Minute, fmt.Sprintf("progress before kill %d", i+1), func() bool { return c.data > before })
		c.poll(t.Context(), time.Duration(rng.IntN(400))*time.Millisecond)
		p.signal(syscall.SIGKILL)
		<-p.done
	}
	t.Logf("%d of %d events came before the last kill", c.data, million.Segments*million.EventsPerSegment)
	finish(t, c, settings)
}

// The broker is killed and started again three times under a running bridge. A single broker may then leave out the end
// of a transaction whose commit it has acknowledged (see offsets/torn.go): the bridge says so, and may double records,
// but loses none.
func TestBrokerRestarts(t *testing.T) {
	t.Parallel()
	rng := seed(t)
	own, err := stack.Start(t.Context(), stack.Options{Brokers: 1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := own.Close(); err != nil {
			t.Error(err)
		}
	})
	settings, topic, notes := crashRun(t, own.KafkaBrokers, 1)
	c := consume(t, own.KafkaBrokers, topic, notes...)
	p := start(t, []string{"run"}, settings...)
	for i := range 3 {
		before := c.data
		c.until(t, time.Minute, fmt.Sprintf("progress before restart %d", i+1), func() bool { return c.data > before })
		c.poll(t.Context(), time.Duration(rng.IntN(300))*time.Millisecond)
		if err := own.KillBroker(0); err != nil {
			t.Fatal(err)
		}
		if err := own.StartBroker(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
	}
	c.until(t, 3*time.Minute, "all events and markers", func() bool {
		return c.data >= int64(million.Segments*million.EventsPerSegment) &&
			c.marks >= int64(million.Segments*partitions)
	})
	c.drain(t)
	torn := strings.Contains(p.log.String(), "left a transaction without its end")
	for _, n := range c.notes {
		failed := t.Errorf
		switch n.(type) {
		case *verify.Unique, *verify.Order:
			if torn {
				failed = t.Logf
			}
		}
		for _, f := range n.Failures() {
			failed("%T: %v", n, f)
		}
	}
	t.Logf("the broker left out the end of a transaction: %t", torn)
}
