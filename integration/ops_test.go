//go:build integration

package integration

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"blobfeed/integration/stack"
	"blobfeed/internal/feedsim"
	"blobfeed/internal/ops"
)

// growing starts the program on a feed in blob storage that the test lets grow.
func growing(t *testing.T, settings ...string) (p *program, grow func(events int), next func()) {
	t.Helper()
	sink, source := azurite(t)
	name, topic := names(t, shared.KafkaBrokers, -1)
	feed, err := feedsim.New(sink, feedsim.Spec{Seed: 5, Shards: 3, EventsPerSegment: 200, Blobs: 50, Versions: []int{6}, Start: time.Now().UTC().Truncate(time.Hour).Add(-time.Hour)})
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
	settings = append(append(source, "NAME="+name, "TOPIC="+topic, "EVENTS=all", "KAFKA_BROKERS="+strings.Join(shared.KafkaBrokers, ","),
		"POLL_INTERVAL=500ms", "DEBUG=quiet_interval=500ms", "COMMIT_INTERVAL=100ms"), settings...)
	p = start(t, []string{"run"}, settings...)
	return p, func(events int) { t.Helper(); must(feed.Append(ctx, events, nil)) }, func() { t.Helper(); must(feed.Next(ctx)) }
}

// Probes, status and metrics of a program at work tell the same, and the truth.
func TestEndpoints(t *testing.T) {
	p, grow, next := growing(t)
	p.ready(t)
	grow(30)
	delivered := func(events int) {
		t.Helper()
		eventually(t, 20*time.Second, "the events are delivered", func() bool { return p.status(t).SinceStart.Events >= events })
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
	if !s.Ready || s.Position.Current == "" || s.Position.Event == nil || s.Lag.Bridge == nil || *s.Lag.Bridge != 0 || s.Lag.Azure == nil || len(s.Leases) != 16 {
		t.Errorf("%+v", s)
	}
	p.expectMetric(t, "blobfeed_ready", 1)
	p.expectMetric(t, "blobfeed_leases_owned", 16)
	p.expectMetric(t, "blobfeed_segments_completed_total", 1)
	p.expectMetric(t, `blobfeed_records_produced_total{kind="resolved"}`, partitions)
	p.expectMetric(t, `blobfeed_lag_seconds{part="bridge"}`, 0)
	for _, series := range []string{`blobfeed_event_latency_seconds_count{stage="bridge"}`, `blobfeed_azure_requests_total{op="list",status="200"}`,
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
	for _, what := range []string{"the first bridge there", "a first start"} { // brokers make topics of their own for the first
		if p != nil {
			stop(p)
		}
		name, topic := names(t, shared.KafkaBrokers, -1)
		settings = []string{"NAME=" + name, "TOPIC=" + topic + ".own", "KAFKA_BROKERS=" + strings.Join(shared.KafkaBrokers, ","), "SOURCE_URL=" + fileURL(t, realFeed)}
		p = ready(what)
		eventually(t, time.Minute, "the feed is delivered", func() bool { return p.status(t).SinceStart.Segments == 10 })
	}
	// What the start and the feed took is given back when nothing was delivered for a while. Symbols make the program larger.
	var rss float64
	eventually(t, 3*time.Minute, "below 40 MB", func() bool {
		rss, _ = p.metric(t, "process_resident_memory_bytes")
		return rss > 0 && rss < 40e6
	})
	t.Logf("%.1f MB", rss/1e6)
	stop(p)
	stop(ready("another start"))
}

// A shard that can't go on makes its instance unready, with the reason, while the process looks alive.
func TestWatchdog(t *testing.T) {
	dir := t.TempDir()
	sink := feedsim.Dir(dir)
	if err := feedsim.Write(t.Context(), sink, feedsim.Spec{EventsPerSegment: 50, BlockEvents: 10, Segments: 2}, nil); err != nil {
		t.Fatal(err)
	}
	const chunk = "log/00/2026/01/01/0000/00000.avro"
	if err := sink.Append(t.Context(), chunk, []byte("garbage, and quite a lot of it, so that it is a block")); err != nil {
		t.Fatal(err)
	}
	name, topic := names(t, shared.KafkaBrokers, -1)
	p := start(t, []string{"run"}, "NAME="+name, "TOPIC="+topic, "EVENTS=all", "KAFKA_BROKERS="+strings.Join(shared.KafkaBrokers, ","),
		"SOURCE_URL="+fileURL(t, dir), "DEBUG=watchdog_timeout=2s", "POLL_INTERVAL=500ms", "COMMIT_INTERVAL=100ms")
	p.unready(t, 30*time.Second, "stuck: lease 0 has had work for ")
	if _, body := get(p.url(t) + "/readyz"); !strings.Contains(body, chunk) {
		t.Errorf("the reason does not name the chunk: %s", body)
	}
	p.expectMetric(t, "blobfeed_ready", 0)
	p.expectMetric(t, `blobfeed_leases{state="stuck"}`, 1)
	p.expectMetric(t, `blobfeed_events_read_total`, 50)
	if n, _ := p.metric(t, `blobfeed_errors_total{class="damage"}`); n < 3 {
		t.Errorf("%v errors of class damage", n)
	}
}

// The program starts before its brokers, says so, and comes up with them. When they die, a stop waits for them, unready;
// a second signal does not wait.
func TestLifecycle(t *testing.T) {
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
	p := start(t, []string{"run"}, "NAME="+name, "TOPIC="+topic, "EVENTS=all", "KAFKA_BROKERS="+strings.Join(own.KafkaBrokers, ","), "SOURCE_URL="+fileURL(t, dir),
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
	eventually(t, 20*time.Second, "the events are delivered", func() bool { return p.status(t).SinceStart.Events == 20 })

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

// What a browser shows of the status page: live, readable at night, on a phone and by keyboard, of itself alone.
func TestPage(t *testing.T) {
	out, err := exec.Command("bash", "browser/install.sh").Output()
	if err != nil {
		t.Fatalf("installing the browser: %v", err)
	}
	browser, modules, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	p, grow, next := growing(t, "INSTANCE=bridge-0")
	p.ready(t)
	grow(120)
	next()
	grow(60)
	events := func(n int) {
		t.Helper()
		eventually(t, 20*time.Second, "the events are delivered", func() bool { return p.status(t).SinceStart.Events >= n })
	}
	events(180)
	pictures := os.Getenv("SCREENSHOTS") // a directory to keep them in: docs/images
	if pictures == "" {
		pictures = t.TempDir()
	}
	look := exec.Command("node", "browser/page.cjs", p.url(t)+"/", pictures)
	look.Env = append(os.Environ(), "NODE_PATH="+modules, "CHROMIUM="+browser)
	look.Stderr = os.Stderr
	in, err := look.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := look.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := look.Start(); err != nil {
		t.Fatal(err)
	}
	var last string
	for lines := bufio.NewScanner(stdout); lines.Scan(); last = lines.Text() {
		if lines.Text() == "grow" {
			grow(40)
			events(220)
			if _, err := in.Write([]byte("grown\n")); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := look.Wait(); err != nil {
		t.Fatal(err)
	}
	var seen struct {
		Badge, Position, Totals, Lag, Azure, Ours, Topics, Leases string

		Overflow   map[string]float64
		Contrast   map[string]float64
		Background struct{ Light, Dark string }
		Focus      []struct{ What, Outline string }
		Target     float64

		Paused, Resumed, Problems, Foreign []string
	}
	if err := json.Unmarshal([]byte(last), &seen); err != nil {
		t.Fatalf("%v: %s", err, last)
	}
	s := p.status(t)
	for what, ok := range map[string]bool{
		"ready":              seen.Badge == "ready",
		"the position":       strings.Contains(seen.Position, s.Position.Current),
		"totals, live":       strings.Contains(seen.Totals, "220"),
		"the lag's parts":    seen.Azure != "" && seen.Azure != "unknown" && seen.Ours != "" && seen.Ours != "unknown",
		"the topic":          strings.Contains(seen.Topics, s.Topic) && strings.Contains(seen.Topics, "UTC"),
		"leases":             strings.Contains(seen.Leases, s.Instance+" (here)") && strings.Contains(seen.Leases, "02: 0000"),
		"no overflow":        len(seen.Overflow) == 2 && seen.Overflow["desk"] <= 0 && seen.Overflow["phone"] <= 0,
		"contrast, light":    seen.Contrast["light"] >= 4.5,
		"contrast, dark":     seen.Contrast["dark"] >= 4.5,
		"a dark mode":        seen.Background.Dark != seen.Background.Light,
		"a large button":     seen.Target >= 36,
		"pause by keyboard":  len(seen.Paused) == 2 && seen.Paused[0] == "true" && seen.Resumed[0] == "false",
		"no problems":        len(seen.Problems) == 0,
		"nothing of others'": len(seen.Foreign) == 0,
	} {
		if !ok {
			t.Errorf("not as it should be: %s\n%s", what, last)
		}
	}
	for i, want := range []string{"Skip to content", "pause", "status (JSON)", "metrics", "readyz"} {
		if i >= len(seen.Focus) || seen.Focus[i].What != want || seen.Focus[i].Outline == "none" {
			t.Errorf("tab %d: %+v, want %s with an outline", i+1, seen.Focus, want)
			break
		}
	}
}
