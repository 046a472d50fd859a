package ops

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/bridge"
	"blobfeed/internal/status"
	"blobfeed/offsets"
)

// busy returns a monitor that has something to say about everything, and its metrics.
func busy(t *testing.T) (*Monitor, *Metrics, *time.Time) {
	t.Helper()
	m, engine, now := watching(t)
	engine.state = state(&offsets.Cursor{Segment: segment})
	engine.state.Frontier.Completed = segment
	engine.state.Frontier.CatchUp = &offsets.CatchUp{Done: 2, Left: 2, Since: start.Add(-time.Minute)}
	engine.state.Frontier.Time = start
	metrics := NewMetrics(m)
	for range 2 { // several clients, as there are
		cl, err := kgo.NewClient(kgo.SeedBrokers("127.0.0.1:1"), metrics.Hook())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(cl.Close)
	}
	m.Leased(bridge.LeasesAssigned, []int32{0})
	m.Committed(
		bridge.Commit{Lease: 0, Read: 5, Seen: start.Add(-time.Minute), Published: start.Add(-time.Second), Drained: true},
	)
	m.Completed(bridge.Completion{})
	m.History(bridge.History{Newest: start})
	m.Requested("read", 206, time.Millisecond, 10, nil)
	m.SchemaRequested("register", 0, time.Millisecond, 0)
	m.SchemaRequested("register", 200, time.Millisecond, 1)
	return m, metrics, now
}

func get(t *testing.T, h http.Handler, path string) (int, string, http.Header) {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	return w.Code, w.Body.String(), w.Header()
}

func TestHandler(t *testing.T) {
	m, metrics, now := busy(t)
	h := Handler(m, metrics)
	expect := func(path string, code int, says string) {
		t.Helper()
		if have, body, _ := get(t, h, path); have != code || !strings.Contains(body, says) {
			t.Errorf("%s: %d %.300s", path, have, body)
		}
	}
	expect("/healthz", 200, "ok")
	expect("/readyz", 200, "ready")
	expect("/nothing", 404, "")
	for _, line := range []string{"events_read_total 5", `schema_registry_requests_total{op="register",status="none"} 1`, "schema_registry_ids 1",
		`schema_registry_request_duration_seconds_count{op="register"} 2`} {
		expect("/metrics", 200, "\nblobfeed_"+line+"\n")
	}
	*now = now.Add(time.Hour)
	expect("/healthz", 200, "ok")
	expect("/readyz", 503, "stuck: lease 0 has had work for 1h0m0s without a commit\n")
	m.Drain()
	expect("/readyz", 503, "draining: ")
	var s Status
	_, body, _ := get(t, h, "/status")
	if err := json.Unmarshal([]byte(body), &s); err != nil || s.Ready || !s.Draining || s.SinceStart.Events != 5 ||
		len(s.Leases) != 1 ||
		s.Name != "test" {
		t.Errorf("%v: %s", err, body)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/status", nil))
	if w.Code != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d", w.Code)
	}
}

// The status of an instance has every field that the report on its state has, with the same name.
func TestStatusHasTheFieldsOfTheReport(t *testing.T) {
	m, metrics, now := busy(t)
	_, body, _ := get(t, Handler(m, metrics), "/status")
	have := map[string]json.RawMessage{}
	if err := json.Unmarshal([]byte(body), &have); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(status.Of("test", m.engine.State(), status.Group{}, *now))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]json.RawMessage{}
	if err := json.Unmarshal(text, &want); err != nil {
		t.Fatal(err)
	}
	for name := range want {
		if have[name] == nil {
			t.Errorf("%s is missing: %s", name, body)
		}
	}
	for _, name := range []string{"name", "started", "topics", "totals"} {
		if string(have[name]) != string(want[name]) {
			t.Errorf("%s is %s, want %s", name, have[name], want[name])
		}
	}
}

// The page is one document: it asks nobody but the instance, and the browser is told to run nothing else.
func TestPageIsSelfContained(t *testing.T) {
	_, body, header := get(t, Handler(NewMonitor("", "", Info{}, time.Minute, nil), http.NotFoundHandler()), "/")
	if link := regexp.MustCompile(`(?i)(https?:)?//[a-z]`).FindString(strings.ReplaceAll(body, "// ", "")); link != "" {
		t.Errorf("it refers to %s", link)
	}
	if n := strings.Count(body, "<script") + strings.Count(body, "<style"); n != 2 || strings.Contains(body, "style=") {
		t.Errorf("%d elements of style and script", n)
	}
	csp := header.Get("Content-Security-Policy")
	if !strings.Contains(csp, "default-src 'none'") || strings.Count(csp, "'sha256-") != 2 ||
		hashOf(page, "style") == hashOf(page, "script") {
		t.Errorf("policy %s", csp)
	}
}

// A scrape holds each metric that the table has, with its labels, and nothing else of ours.
func TestMetricsAreAsTheTableSays(t *testing.T) {
	_, served, _ := busy(t)
	families, err := served.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	have := map[string][]string{}
	for _, f := range families {
		for _, p := range f.GetMetric()[0].GetLabel() {
			have[f.GetName()] = append(have[f.GetName()], p.GetName())
		}
		if have[f.GetName()] == nil {
			have[f.GetName()] = []string{}
		}
	}
	for _, d := range scraped {
		labels, ok := have[d.full()]
		want := slices.Sorted(slices.Values(d.labels))
		if !ok || !slices.Equal(labels, want) {
			t.Errorf("%s: there is %v with labels %v, want %v", d.full(), ok, labels, want)
		}
	}
	problems, err := testutil.GatherAndLint(served.registry)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if !strings.HasPrefix(p.Metric, "go_") && !strings.HasPrefix(p.Metric, "blobfeed_kafka_") {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
}

// A count of gaps that begins at 0 with a restart, and goes on where it was, would look like history that is lost now.
func TestGapsAreNotToldBeforeTheyAreKnown(t *testing.T) {
	m, engine, _ := watching(t)
	h := Handler(m, NewMetrics(m))
	told := func() bool {
		_, body, _ := get(t, h, "/metrics")
		return strings.Contains(body, "\nblobfeed_gaps_total")
	}
	if told() {
		t.Error("told before the brokers have answered")
	}
	engine.state = &offsets.State{}
	if told() {
		t.Error("told before the frontier was read")
	}
	if _, body, _ := get(t, h, "/status"); !strings.Contains(body, `"started":false`) {
		t.Errorf("the status does not say that nothing is known: %s", body)
	}
	engine.state = state()
	if _, body, _ := get(t, h, "/metrics"); !strings.Contains(body, "\nblobfeed_gaps_total 1\n") {
		t.Error("not told when it is known")
	}
}

// A total without labels is 0 before anything happens, so that a rate sees the first increase.
func TestTotalsStartAtZero(t *testing.T) {
	m, _, _ := watching(t)
	_, body, _ := get(t, Handler(m, NewMetrics(m)), "/metrics")
	for _, line := range []string{"transaction_duration_seconds_count 0", "azure_received_bytes_total 0", "transactions_total 0"} {
		if !strings.Contains(body, "\nblobfeed_"+line+"\n") {
			t.Errorf("there is no %s", line)
		}
	}
}

// The server answers until its context ends, and finishes what was asked before.
func TestServe(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	asked, release := make(chan struct{}), make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- Serve(ctx, l, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			close(asked)
			<-release
			text(w, 200, "late")
		}))
	}()
	answer := make(chan string, 1)
	go func() {
		resp, err := http.Get("http://" + l.Addr().String())
		if err != nil {
			answer <- err.Error()
			return
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		answer <- string(body)
	}()
	<-asked
	cancel()
	close(release)
	if got := <-answer; got != "late" {
		t.Errorf("answer %q", got)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// The reference has what a scrape has, with the same type and labels.
func TestReference(t *testing.T) {
	_, served, _ := busy(t)
	families, err := served.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	described := map[string]Described{}
	for _, d := range Reference() {
		described[d.Name] = d
		if d.Help == "" {
			t.Errorf("%s has no meaning", d.Name)
		}
	}
	for _, f := range families {
		if !strings.HasPrefix(f.GetName(), Namespace+"_") {
			continue
		}
		d, ok := described[f.GetName()]
		var labels []string
		for _, p := range f.GetMetric()[0].GetLabel() {
			labels = append(labels, p.GetName())
		}
		want := slices.Sorted(slices.Values(d.Labels))
		same := strings.EqualFold(f.GetType().String(), d.Type) && f.GetHelp() == d.Help && slices.Equal(labels, want)
		if !ok || !same {
			t.Errorf("%s is a %s with labels %v, %q; the reference says %+v", f.GetName(), f.GetType(), labels, f.GetHelp(), d)
		}
	}
}

// The reference has every metric of the Kafka clients, also one that a scrape does not show before it happens.
func TestReferenceHasTheClientsMetrics(t *testing.T) {
	registered := catalog{}
	cl, err := kgo.NewClient(kgo.WithHooks(newClients(registered, nil))) // kprom makes its metrics with a client
	if err != nil {
		t.Fatal(err)
	}
	cl.Close()
	if len(registered) < 15 {
		t.Fatalf("only %d metrics are registered", len(registered))
	}
	have := map[string]Described{}
	for _, d := range Reference() {
		if strings.HasPrefix(d.Name, Namespace+"_kafka_") {
			have[d.Name] = d
		}
	}
	for name, want := range registered {
		if d := have[name]; d.Help != want.Help || !slices.Equal(d.Labels, want.Labels) {
			t.Errorf("%s: the reference says %+v, want %+v", name, d, want)
		}
		delete(have, name)
	}
	if len(have) > 0 {
		t.Errorf("no client has %v", have)
	}
}
