//go:build integration

package integration

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"blobfeed/integration/stack"
	"blobfeed/internal/ops"
	"blobfeed/internal/testing/feedsim"
)

// growing starts the program on a feed in blob storage that the test lets grow.
func growing(t *testing.T, settings ...string) (p *program, grow func(events int), next func()) {
	t.Helper()
	sink, source := azurite(t)
	name, topic := names(t, shared.KafkaBrokers, -1)
	feed, err := feedsim.New(sink, feedsim.Spec{Seed: 5, Shards: 3, EventsPerSegment: 200, Blobs: 50,
		Versions: []int{6}, Start: time.Now().UTC().Truncate(time.Hour).Add(-time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(feed.Open(ctx))
	settings = append(append(source, "NAME="+name, "TOPIC="+topic, "EVENTS=all",
		"KAFKA_BROKERS="+strings.Join(shared.KafkaBrokers, ","),
		"POLL_INTERVAL=500ms", "DEBUG=quiet_interval=500ms", "COMMIT_INTERVAL=100ms"), settings...)
	p = start(t, []string{"run"}, settings...)
	return p, func(events int) { t.Helper(); must(feed.Append(ctx, events, nil)) },
		func() { t.Helper(); must(feed.Next(ctx)) }
}

// Probes, status and metrics of a program at work tell the same, and the truth.
func TestEndpoints(t *testing.T) {
	t.Parallel()
	p, grow, next := growing(t)
	p.ready(t)
	grow(30)
	delivered := func(events int) {
		t.Helper()
		eventually(t, 20*time.Second, "the events are delivered",
			func() bool { return p.status(t).SinceStart.Events >= events })
	}
	delivered(30)
	next()
	grow(10)
	delivered(40)
	eventually(t, 10*time.Second, "all leases wait", func() bool {
		s := p.status(t)
		for _, l := range s.Leases {
			if l.State == "working" {
				return false
			}
		}
		return s.Position.Resolved != nil && s.Position.Headroom != nil
	})
	s := p.status(t)
	if !s.Ready || s.Position.Current == "" || s.Position.Event == nil || s.Lag.Bridge == nil || *s.Lag.Bridge != 0 ||
		s.Lag.Azure == nil || len(s.Leases) != 16 {
		t.Errorf("%+v", s)
	}
	p.expectMetric(t, "blobfeed_ready", 1)
	p.expectMetric(t, "blobfeed_leases_owned", 16)
	p.expectMetric(t, "blobfeed_segments_completed_total", 1)
	p.expectMetric(t, `blobfeed_records_produced_total{kind="resolved"}`, partitions)
	p.expectMetric(t, `blobfeed_lag_seconds{part="bridge"}`, 0)
	for _, series := range []string{`blobfeed_event_latency_seconds_count{stage="bridge"}`,
		`blobfeed_azure_requests_total{op="list",status="200"}`,
		`blobfeed_azure_requests_total{op="read",status="206"}`, `blobfeed_kafka_produce_records_total{node_id="1"}`} {
		if n, ok := p.metric(t, series); !ok || n < 1 {
			t.Errorf("%s = %v, %v", series, n, ok)
		}
	}
	described := map[string]bool{}
	for _, d := range ops.Reference() {
		described[d.Name] = true
	}
	_, body := get(p.url(t) + "/metrics")
	for line := range strings.Lines(body) {
		if name, ok := strings.CutPrefix(line, "# TYPE blobfeed_"); ok {
			if name, _, _ = strings.Cut(name, " "); !described["blobfeed_"+name] {
				t.Errorf("blobfeed_%s is not in the reference", name)
			}
		}
	}
	check := exec.Command(binary, "healthcheck")
	check.Env = append(os.Environ(), "BRIDGE_HTTP_ADDR="+strings.TrimPrefix(p.url(t), "http://"))
	if out, err := check.CombinedOutput(); err != nil || string(out) != "ready\n" {
		t.Errorf("healthcheck: %v: %s", err, out)
	}
}

// An idle program beside running brokers is soon ready, at its very first start, too, and small.
func TestIdle(t *testing.T) {
	var settings []string
	ready := func(what string) *program {
		t.Helper()
		began := time.Now()
		p := start(t, []string{"run"}, settings...)
		p.ready(t)
		took := time.Since(began)
		t.Logf("%s: ready after %s", what, took)
		if took > 5*time.Second {
			t.Errorf("%s: ready after %s", what, took)
		}
		if log := p.log.String(); strings.Contains(log, "retrying") {
			t.Errorf("%s: something went wrong:\n%s", what, log)
		}
		return p
	}
	stop := func(p *program) {
		t.Helper()
		p.signal(syscall.SIGTERM)
		if code := p.wait(t, 20*time.Second); code != 0 {
			t.Errorf("exit code %d", code)
		}
	}
	var p *program
	// brokers make topics of their own for the first
	for _, what := range []string{"the first bridge there", "a first start"} {
		if p != nil {
			stop(p)
		}
		name, topic := names(t, shared.KafkaBrokers, -1)
		settings = []string{"NAME=" + name, "TOPIC=" + topic + ".own",
			"KAFKA_BROKERS=" + strings.Join(shared.KafkaBrokers, ","), "SOURCE_URL=" + fileURL(t, realFeed)}
		p = ready(what)
		eventually(t, time.Minute, "the feed is delivered",
			func() bool { return p.status(t).SinceStart.Segments == 10 })
	}
	// What the start and the feed took is given back when nothing was delivered for a while. Symbols make the program
	// larger.
	var rss float64
	eventually(t, 3*time.Minute, "below 48 MB", func() bool {
		rss, _ = p.metric(t, "process_resident_memory_bytes")
		return rss > 0 && rss < 48e6
	})
	t.Logf("%.1f MB", rss/1e6)
	stop(p)
	stop(ready("another start"))
}

// A shard that can't go on makes its instance unready, with the reason, while the process looks alive.
func TestWatchdog(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	sink := feedsim.Dir(dir)
	if err := feedsim.Write(t.Context(), sink, feedsim.Spec{EventsPerSegment: 50, BlockEvents: 10, Segments: 2},
		nil); err != nil {
		t.Fatal(err)
	}
	const chunk = "log/00/2026/01/01/0000/00000.avro"
	if err := sink.Append(t.Context(), chunk,
		[]byte("garbage, and quite a lot of it, so that it is a block")); err != nil {
		t.Fatal(err)
	}
	name, topic := names(t, shared.KafkaBrokers, -1)
	p := start(t, []string{"run"}, "NAME="+name, "TOPIC="+topic, "EVENTS=all",
		"KAFKA_BROKERS="+strings.Join(shared.KafkaBrokers, ","),
		"SOURCE_URL="+fileURL(t, dir), "DEBUG=watchdog_timeout=2s", "POLL_INTERVAL=500ms", "COMMIT_INTERVAL=100ms")
	p.unready(t, 30*time.Second, "stuck: lease 0 has had work for ")
	p.unready(t, 30*time.Second, chunk)
	p.expectMetric(t, "blobfeed_ready", 0)
	p.expectMetric(t, `blobfeed_leases{state="stuck"}`, 1)
	eventually(t, 30*time.Second, "the other events are read, and the chunk is tried again and again", func() bool {
		read, _ := p.metric(t, `blobfeed_events_read_total`)
		damage, _ := p.metric(t, `blobfeed_errors_total{class="damage"}`)
		return read == 50 && damage >= 3
	})
}

// The program starts before its brokers, says so, and comes up with them. When they die, a stop waits for them,
// unready; a second signal does not wait.
func TestLifecycle(t *testing.T) {
	t.Parallel()
	own, err := stack.Start(t.Context(), stack.Options{Brokers: 1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := own.Close(); err != nil {
			t.Error(err)
		}
	})
	dir := t.TempDir()
	feed, err := feedsim.New(feedsim.Dir(dir), feedsim.Spec{Shards: 3, EventsPerSegment: 200})
	if err != nil {
		t.Fatal(err)
	}
	if err := feed.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	name, topic := names(t, own.KafkaBrokers, 1)
	if err := own.KillBroker(0); err != nil {
		t.Fatal(err)
	}
	p := start(t, []string{"run"}, "NAME="+name, "TOPIC="+topic, "EVENTS=all",
		"KAFKA_BROKERS="+strings.Join(own.KafkaBrokers, ","), "SOURCE_URL="+fileURL(t, dir),
		"POLL_INTERVAL=200ms", "COMMIT_INTERVAL=100ms", "SESSION_TIMEOUT=2s",
		"DEBUG=quiet_interval=200ms,shutdown_timeout=1m,watchdog_timeout=1h")
	p.unready(t, 20*time.Second, "starting: ")
	if err := own.StartBroker(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	p.ready(t)
	if err := feed.Append(t.Context(), 20, nil); err != nil {
		t.Fatal(err)
	}
	eventually(t, 20*time.Second, "the events are delivered",
		func() bool { return p.status(t).SinceStart.Events == 20 })

	if err := own.KillBroker(0); err != nil {
		t.Fatal(err)
	}
	if err := feed.Append(t.Context(), 20, nil); err != nil { // for a transaction that can't end
		t.Fatal(err)
	}
	eventually(t, 20*time.Second, "a lease is at work", func() bool {
		for _, l := range p.status(t).Leases {
			if l.State == "working" {
				return true
			}
		}
		return false
	})
	p.signal(syscall.SIGTERM)
	p.unready(t, 5*time.Second, "draining: ")
	p.signal(syscall.SIGINT)
	if code := p.wait(t, 3*time.Second); code != 1 {
		t.Errorf("exit code %d after a second signal", code)
	}
}
