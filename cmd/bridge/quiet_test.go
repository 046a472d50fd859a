package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"blobfeed/internal/ops"
	"blobfeed/internal/testing/fakebroker"
)

// safeBuffer may be read while it is written.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// statusAt returns what the instance at an address says.
func statusAt(t *testing.T, address string) (s ops.Status) {
	t.Helper()
	answer, err := http.Get("http://" + address + "/status")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if err := json.NewDecoder(answer.Body).Decode(&s); err != nil {
		t.Fatal(err)
	}
	return s
}

// When everything is delivered the log is quiet, though the feed is polled and leases are kept. When the
// brokers go away it says so once, however often that is tried again.
func TestQuiet(t *testing.T) {
	t.Parallel()
	fake := fakebroker.New(t)
	setAll(t, map[string]string{
		"SOURCE_URL": "file://" + abs(t, "../../testdata/real-2020"), "KAFKA_BROKERS": fake.ListenAddrs()[0],
		"POLL_INTERVAL": "50ms", "COMMIT_INTERVAL": "50ms", "OFFSETS_LEASES": "2", "LOG_FORMAT": "json",
		"DEBUG": "quiet_interval=50ms,report_interval=100ms", "HTTP_ADDR": "127.0.0.1:0",
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var log safeBuffer
	ended := make(chan int, 1)
	go func() { ended <- execute(ctx, environ(t), []string{"run"}, &log, &log) }()
	quiet := func(window time.Duration) (grew bool) {
		before := log.String()
		time.Sleep(window) // what is looked for is that nothing happens
		return log.String() != before
	}
	for !strings.Contains(log.String(), `"msg":"progress","verdict":"up to date"`) ||
		!strings.Contains(log.String(), `"msg":"history before the bridge's position"`) || quiet(300*time.Millisecond) {
		if ctx.Err() != nil {
			t.Fatalf("never quiet:\n%s", log.String())
		}
	}
	if quiet(600 * time.Millisecond) {
		t.Errorf("not quiet when all is delivered:\n%s", log.String())
	}
	delivered := log.String()
	_, address, _ := strings.Cut(delivered, `"msg":"serving HTTP","address":"`)
	address, _, _ = strings.Cut(address, `"`)
	fake.Close()
	for attempts := 0; attempts < 3; time.Sleep(50 * time.Millisecond) { // between two looks
		if ctx.Err() != nil {
			t.Fatalf("%d attempts:\n%s", attempts, log.String())
		}
		attempts = 0
		for _, f := range statusAt(t, address).Errors {
			attempts = max(attempts, f.Count)
		}
	}
	cancel()
	<-ended
	counts := map[string]int{}
	for line := range strings.Lines(strings.TrimPrefix(log.String(), delivered)) {
		var r struct{ Level, Msg, Error string }
		if json.Unmarshal([]byte(line), &r) == nil && r.Level == "WARN" && !strings.Contains(line, `"repeated"`) {
			counts[r.Error]++
		}
	}
	if len(counts) == 0 {
		t.Errorf("the brokers went away, and nobody says so:\n%s", log.String())
	}
	for text, n := range counts {
		if n > 1 {
			t.Errorf("%d times: %s", n, text)
		}
	}
}

// The log says within seconds that the storage service is away, and why.
func TestStorageAwayIsLoggedEarly(t *testing.T) {
	t.Parallel()
	clusterFor(t)
	setenv(t, "BRIDGE_SOURCE_URL", "http://127.0.0.1:1/acct")
	setenv(t, "BRIDGE_SOURCE_AUTH", "anonymous")
	began := time.Now()
	const says = `"level":"WARN","msg":"the storage service does not serve requests; retrying","error":"…connection refused`
	provoke(t, says, []string{"run"})
	if took := time.Since(began); took > 8*time.Second {
		t.Errorf("after %s", took)
	}
}

// A first run --once that is stopped before it has made its topics does not miss them.
func TestStoppedBeforeItsFirstStart(t *testing.T) {
	clusterFor(t)
	setAll(t, map[string]string{
		"SOURCE_URL": "http://127.0.0.1:1/acct", "SOURCE_AUTH": "anonymous", "HTTP_ADDR": "127.0.0.1:0", "LOG_FORMAT": "json",
	})
	_, log, stop := running(t, "--once")
	await(t, "it has met the storage", func() bool { return strings.Contains(log.String(), "connection refused") })
	stop(syscall.SIGTERM)
	if text := log.String(); strings.Contains(text, "is gone") {
		t.Error(text)
	}
}

// What run ends with is a line of its log, in its format.
func TestLastLineOfTheLog(t *testing.T) {
	t.Parallel()
	setenv(t, "BRIDGE_SOURCE_URL", "file:///feed")
	setenv(t, "BRIDGE_KAFKA_SASL_MECHANISM", "PLAIN")
	for _, args := range []string{"run", "run --once"} {
		code, _, stderr := call(t, strings.Fields(args)...)
		var line struct {
			Level, Msg, Error string
			Code              int `json:"exit_code"`
		}
		if err := json.Unmarshal([]byte(stderr), &line); err != nil || code != exitSettings || line.Code != code ||
			line.Level != "ERROR" || line.Msg == "" || strings.Contains(line.Error, "\n") ||
			!strings.HasPrefix(line.Error, "settings: BRIDGE_KAFKA_BROKERS: required") {
			t.Errorf("%s: exit code %d, %v: %s", args, code, err, stderr)
		}
	}
	setenv(t, "BRIDGE_LOG_FORMAT", "text")
	const text = ` level=ERROR msg="run has failed" error="settings: `
	if _, _, stderr := call(t, "run"); !strings.Contains(stderr, text) || strings.Count(stderr, "\n") != 1 {
		t.Errorf("%s", stderr)
	}
	if _, _, stderr := call(t, "check"); !strings.HasPrefix(stderr, "bridge: BRIDGE_SOURCE_URL: ") {
		t.Errorf("another verb: %s", stderr)
	}
}

// Variables of OpenTelemetry, which have no effect, are named once at the start.
func TestTracesAreMissed(t *testing.T) {
	t.Parallel()
	clusterFor(t)
	setenv(t, "OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
	if _, _, stderr := call(t, "run", "--once"); strings.Count(stderr, "OTEL_* variables have no effect") != 1 {
		t.Errorf("%s", stderr)
	}
}
