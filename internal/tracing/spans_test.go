package tracing

import (
	"errors"
	"log/slog"
	"maps"
	"slices"
	"testing"
	"time"

	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"blobfeed/bridge"
)

var start = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// step goes from one second to another.
func step(from, to int) bridge.Step {
	at := func(second int) time.Time { return start.Add(time.Duration(second) * time.Second) }
	return bridge.Step{Began: at(from), Ended: at(to), Busy: at(to).Sub(at(from)) / 2}
}

// spans returns what becomes of transactions, by name.
func spans(t *testing.T, topic string, tell func(*Tracer)) map[string]tracetest.SpanStub {
	t.Helper()
	kept := tracetest.NewInMemoryExporter()
	tell(newTracer(Info{Topic: topic}, slog.New(slog.DiscardHandler), sdk.NewTracerProvider(sdk.WithSyncer(kept))))
	named := map[string]tracetest.SpanStub{}
	for _, s := range kept.GetSpans() {
		named[s.Name] = s
	}
	if len(named) != len(kept.GetSpans()) {
		t.Errorf("%d spans of %d names", len(kept.GetSpans()), len(named))
	}
	return named
}

func attributes(s tracetest.SpanStub) map[string]any {
	m := map[string]any{}
	for _, a := range s.Attributes {
		m[string(a.Key)] = a.Value.AsInterface()
	}
	return m
}

func TestTransaction(t *testing.T) {
	got := spans(t, "changes", func(tr *Tracer) {
		tr.Ended(bridge.Transaction{
			Commit: bridge.Commit{Lease: 3, Read: 12, Emitted: 10, Filtered: 2,
				Bytes: 4000}, Blocks: 4, Cursor: "03=00000/2434",
			Reading: step(1, 4), Encoding: step(2, 5), Publishing: step(3, 7), Committing: step(7, 8),
		})
	})
	root := got["deliver"]
	if root.Parent.IsValid() || !root.StartTime.Equal(start.Add(time.Second)) ||
		!root.EndTime.Equal(start.Add(8*time.Second)) ||
		root.Status.Code != codes.Unset {
		t.Errorf("%+v", root)
	}
	if a := attributes(root); a["blobfeed.lease"] != int64(3) || a["blobfeed.events"] != int64(12) ||
		a["blobfeed.records"] != int64(10) ||
		a["blobfeed.blocks"] != int64(4) ||
		a["blobfeed.cursor"] != "03=00000/2434" {
		t.Error(a)
	}
	for name, want := range map[string]bridge.Step{
		"feed read": step(1, 4), "encode": step(2, 5), "publish": step(3, 7), "commit": step(7, 8),
	} {
		s := got[name]
		if s.Parent.SpanID() != root.SpanContext.SpanID() || s.SpanContext.TraceID() != root.SpanContext.TraceID() ||
			!s.StartTime.Equal(want.Began) ||
			!s.EndTime.Equal(want.Ended) {
			t.Errorf("%s: %+v", name, s)
		}
		if busy := attributes(s)["blobfeed.busy_seconds"]; busy != want.Busy.Seconds() {
			t.Errorf("%s: busy for %v seconds", name, busy)
		}
	}
	p := got["publish"]
	if a := attributes(p); p.SpanKind != trace.SpanKindProducer || a["messaging.system"] != "kafka" ||
		a["messaging.destination.name"] != "changes" ||
		a["messaging.batch.message_count"] != int64(10) {
		t.Errorf("kind %s, %v", p.SpanKind, a)
	}
	if len(got) != 5 {
		t.Error(slices.Collect(maps.Keys(got)))
	}
}

// Markers alone are another matter, and a topic that is a template is said to be one.
func TestMarkers(t *testing.T) {
	got := spans(t, "blobs.{container}", func(tr *Tracer) {
		tr.Ended(bridge.Transaction{Segments: 1, Markers: 4, Publishing: step(3, 7), Committing: step(7, 8)})
	})
	if len(got) != 3 || got["resolve"].Name == "" ||
		attributes(got["publish"])["messaging.destination.template"] != "blobs.{container}" {
		t.Errorf("%+v", got)
	}
}

// An error is the transaction's, and that of the step it was met in.
func TestAborted(t *testing.T) {
	for failed, txn := range map[string]bridge.Transaction{
		"publish": {Reading: step(1, 4), Encoding: step(2, 5), Publishing: step(3, 7)},
		"commit":  {Reading: step(1, 4), Encoding: step(2, 5), Publishing: step(3, 7), Committing: step(7, 8)},
	} {
		txn.Err = errors.New("the broker says no")
		for name, s := range spans(t, "changes", func(tr *Tracer) { tr.Ended(txn) }) {
			want := codes.Unset
			if name == "deliver" || name == failed {
				want = codes.Error
			}
			if s.Status.Code != want ||
				want == codes.Error &&
					(s.Status.Description != "the broker says no" || len(s.Events) != 1 ||
						s.Events[0].Time.Before(s.StartTime) || s.Events[0].Time.After(s.EndTime)) {
				t.Errorf("%s failed; %s: %+v %+v", failed, name, s.Status, s.Events)
			}
		}
	}
}

func TestRetry(t *testing.T) {
	got := spans(t, "changes", func(tr *Tracer) { tr.Failed(3, errors.New("reading it: reset")) })["retry"]
	if got.Status.Code != codes.Error || got.Status.Description != "reading it: reset" ||
		attributes(got)["blobfeed.lease"] != int64(3) {
		t.Errorf("%+v", got)
	}
}

// What the sampler leaves out costs no children.
func TestSampled(t *testing.T) {
	kept := tracetest.NewInMemoryExporter()
	tr := newTracer(Info{}, slog.New(slog.DiscardHandler),
		sdk.NewTracerProvider(sdk.WithSyncer(kept), sdk.WithSampler(sdk.NeverSample())))
	tr.Ended(bridge.Transaction{Publishing: step(1, 2)})
	if n := len(kept.GetSpans()); n != 0 {
		t.Errorf("%d spans", n)
	}
}

// The spans of one of many bridges name the bridge and its topic.
func TestOfOneBridge(t *testing.T) {
	for _, name := range []string{"photos", "music"} {
		got := spans(t, "", func(tr *Tracer) {
			tr.Of(name, "{account}").Ended(bridge.Transaction{Publishing: step(1, 2)})
		})
		scope := got["deliver"].InstrumentationScope
		if is, _ := scope.Attributes.Value("blobfeed.name"); is.AsString() != name {
			t.Errorf("the scope has %v, want %s", scope.Attributes, name)
		}
		if topic := attributes(got["publish"])["messaging.destination.template"]; topic != "{account}" {
			t.Errorf("the topic is %v", topic)
		}
	}
}
