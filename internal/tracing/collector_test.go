package tracing

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	otlp "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"

	"blobfeed/bridge"
)

// Spans arrive, with who they are from, headers and all, as the variables say.
func TestSent(t *testing.T) {
	var got otlp.ExportTraceServiceRequest
	var path, key string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = proto.Unmarshal(body, &got)
		}
		if err != nil {
			t.Error(err)
		}
		path, key = r.URL.Path, r.Header.Get("Key")
	}))
	environment(t, "EXPORTER_OTLP_ENDPOINT="+server.URL+" EXPORTER_OTLP_HEADERS=key=a%20b "+
		"RESOURCE_ATTRIBUTES=team=photos,service.instance.id=other")
	traces, err := Start(t.Context(), Info{Name: "feed", Instance: "one", Version: "1.2"},
		slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	traces.Ended(bridge.Transaction{Publishing: step(1, 2)})
	traces.Stop()
	server.Close() // what it got may be read now
	if len(got.ResourceSpans) != 1 || path != "/v1/traces" || key != "a b" {
		t.Fatalf("%q, %q, %v", path, key, &got)
	}
	from := map[string]string{}
	for _, a := range got.ResourceSpans[0].Resource.Attributes {
		from[a.Key] = a.Value.GetStringValue()
	}
	for name, want := range map[string]string{
		"service.name": "blobfeed", "service.version": "1.2", "service.instance.id": "other", "blobfeed.name": "feed",
		"team": "photos",
	} {
		if from[name] != want {
			t.Errorf("%s is %q, want %q", name, from[name], want)
		}
	}
	if n := len(got.ResourceSpans[0].ScopeSpans[0].Spans); n != 2 {
		t.Errorf("%d spans", n)
	}
}

// A collector that takes a connection and never answers holds up nobody: what is too much is dropped, and the
// stop is in time. One export would wait for ten seconds.
func TestHangs(t *testing.T) {
	defer ended(t) // the SDK's errors go to whoever started last
	gone := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-gone }))
	defer server.Close()
	defer close(gone)
	environment(t, "EXPORTER_OTLP_ENDPOINT="+server.URL+" BSP_MAX_QUEUE_SIZE=10 BSP_MAX_EXPORT_BATCH_SIZE=1")
	var out bytes.Buffer
	traces, err := Start(t.Context(), Info{}, slog.New(slog.NewTextHandler(&out, nil)))
	if err != nil {
		t.Fatal(err)
	}
	told := make(chan struct{})
	go func() {
		defer close(told)
		for range 1000 {
			traces.Ended(bridge.Transaction{Publishing: step(1, 2)})
		}
	}()
	select {
	case <-told:
	case <-time.After(5 * time.Second):
		t.Fatal("the engine waits")
	}
	began := time.Now()
	traces.Stop()
	if took := time.Since(began); took > flushTimeout+3*time.Second {
		t.Errorf("the stop took %s", took)
	}
	if !strings.Contains(out.String(), "the last traces are lost") {
		t.Errorf("nobody says so: %s", &out)
	}
}

// ended waits until the SDK sends nothing any more.
func ended(t *testing.T) {
	t.Helper()
	stacks := make([]byte, 1<<20)
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if !bytes.Contains(stacks[:runtime.Stack(stacks, true)], []byte("batchSpanProcessor")) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the SDK still sends")
		}
	}
}
