package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// receiver is a collector that keeps spans, by trace.
func receiver(t *testing.T) (url string, traces func() map[string][]*otlp.Span) {
	t.Helper()
	var mu sync.Mutex
	kept := map[string][]*otlp.Span{}
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var got collector.ExportTraceServiceRequest
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = proto.Unmarshal(body, &got)
		}
		if err != nil {
			t.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		for _, res := range got.ResourceSpans {
			for _, scope := range res.ScopeSpans {
				for _, s := range scope.Spans {
					kept[string(s.TraceId)] = append(kept[string(s.TraceId)], s)
				}
			}
		}
	}))
	t.Cleanup(server.Close)
	return server.URL, func() map[string][]*otlp.Span {
		mu.Lock()
		defer mu.Unlock()
		return kept
	}
}

func count(s *otlp.Span, name string) int64 {
	for _, a := range s.Attributes {
		if a.Key == name {
			return a.Value.GetIntValue()
		}
	}
	return 0
}

// Whatever run delivers is in a trace; each is whole, and lies in its root's time.
func TestTraces(t *testing.T) {
	url, traces := receiver(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
	deliveredReal(t)
	events, records, markers := int64(0), int64(0), int64(0)
	for _, spans := range traces() {
		names := map[string]*otlp.Span{}
		for _, s := range spans {
			names[s.Name] = s
		}
		root := names["deliver"]
		if root == nil {
			root = names["resolve"]
		}
		if root == nil || len(root.ParentSpanId) > 0 || names["publish"] == nil ||
			names["publish"].Kind != otlp.Span_SPAN_KIND_PRODUCER ||
			names["commit"] == nil {
			t.Errorf("a trace has %v", spans)
			continue
		}
		for _, s := range spans {
			if s != root &&
				(string(s.ParentSpanId) != string(root.SpanId) || s.StartTimeUnixNano < root.StartTimeUnixNano ||
					s.EndTimeUnixNano > root.EndTimeUnixNano) {
				t.Errorf("%v is not in %v", s, root)
			}
		}
		if n := count(root, "blobfeed.events"); n > 0 && (names["feed read"] == nil || names["encode"] == nil) {
			t.Errorf("%d events, and the trace has %v", n, spans)
		}
		events += count(root, "blobfeed.events")
		records += count(root, "blobfeed.records")
		markers += count(root, "blobfeed.markers")
	}
	if events != 717 || records != 717 || markers != 10*4 {
		t.Errorf("%d events, %d records, %d markers", events, records, markers)
	}
}

// A collector that takes everything and never answers changes nothing about the delivery.
func TestTracesHang(t *testing.T) {
	gone := make(chan struct{})
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		asked.Add(1)
		<-gone
	}))
	defer server.Close()
	defer close(gone)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.URL)
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "1")
	t.Setenv("OTEL_BSP_MAX_QUEUE_SIZE", "1")
	t.Setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "1")
	c := clusterFor(t)
	began := time.Now()
	code, _, stderr := call(t, "run", "--once")
	if took := time.Since(began); code != exitOK || took > 9*time.Second { // an export that is waited for takes ten
		t.Errorf("exit code %d after %s: %s", code, took, stderr)
	}
	if events, _ := positions(read(t, c, changes)); len(events) != 717 || asked.Load() == 0 {
		t.Errorf("%d events; the collector was asked %d times", len(events), asked.Load())
	}
	if !strings.Contains(stderr, "the last traces are lost") {
		t.Errorf("nobody says so: %s", stderr)
	}
}

// Only where they are asked for, and the settings that they have not are told.
func TestTracesOff(t *testing.T) {
	url, traces := receiver(t)
	clusterFor(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
	if code, _, stderr := call(t, "run", "--once"); code != exitSettings ||
		!strings.Contains(stderr, "only http/protobuf is possible") {
		t.Errorf("grpc: exit code %d: %s", code, stderr)
	}
	t.Setenv("OTEL_SDK_DISABLED", "true")
	runToEnd(t)
	t.Setenv("OTEL_SDK_DISABLED", "false")
	t.Setenv("OTEL_TRACES_EXPORTER", "none")
	runToEnd(t)
	if got := traces(); len(got) > 0 {
		t.Errorf("%d traces", len(got))
	}
}
