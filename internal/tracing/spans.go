package tracing

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"blobfeed/bridge"
	"blobfeed/internal/plain"
)

var (
	_ bridge.TransactionObserver = (*Tracer)(nil)
	_ bridge.FailureObserver     = (*Tracer)(nil)
)

// Ended implements bridge.TransactionObserver.
func (t *Tracer) Ended(txn bridge.Transaction) {
	steps := []struct {
		name string
		kind trace.SpanKind
		bridge.Step
	}{
		{"feed read", trace.SpanKindInternal, txn.Reading},
		{"encode", trace.SpanKindInternal, txn.Encoding},
		{"publish", trace.SpanKindProducer, txn.Publishing},
		{"commit", trace.SpanKindInternal, txn.Committing},
	}
	var began, ended time.Time
	last := 0 // where an error is from
	for i, s := range steps {
		if s.Began.IsZero() {
			continue
		}
		if began.IsZero() || s.Began.Before(began) {
			began = s.Began
		}
		ended, last = s.Ended, i
	}
	name := "deliver"
	if txn.Read == 0 && txn.Segments > 0 {
		name = "resolve"
	}
	ctx, root := t.tracer.Start(context.Background(), name, trace.WithNewRoot(), trace.WithTimestamp(began))
	if !root.IsRecording() {
		return // by the sampler
	}
	root.SetAttributes(
		attribute.Int("blobfeed.lease", int(txn.Lease)),
		attribute.String("blobfeed.segment", txn.Segment.String()), attribute.String("blobfeed.cursor", txn.Cursor),
		attribute.Int("blobfeed.segments", txn.Segments), attribute.Int("blobfeed.blocks", txn.Blocks),
		attribute.Int("blobfeed.events", txn.Read), attribute.Int("blobfeed.filtered", txn.Filtered),
		attribute.Int("blobfeed.late", txn.Late), attribute.Int("blobfeed.records", txn.Emitted),
		attribute.Int("blobfeed.dead_letters", txn.Dead), attribute.Int("blobfeed.markers", txn.Markers),
		attribute.Int("blobfeed.bytes", txn.Bytes),
	)
	for i, s := range steps {
		if s.Began.IsZero() {
			continue
		}
		_, child := t.tracer.Start(ctx, s.name, trace.WithTimestamp(s.Began), trace.WithSpanKind(s.kind),
			trace.WithAttributes(attribute.Float64("blobfeed.busy_seconds", s.Busy.Seconds())))
		if s.kind == trace.SpanKindProducer {
			child.SetAttributes(t.destination, attribute.String("messaging.system", "kafka"),
				attribute.String("messaging.operation.type", "send"),
				attribute.String("messaging.operation.name", "send"),
				attribute.Int("messaging.batch.message_count", txn.Emitted+txn.Dead+txn.Markers))
		}
		if i == last {
			fail(child, txn.Err, s.Ended)
		}
		child.End(trace.WithTimestamp(s.Ended))
	}
	fail(root, txn.Err, ended)
	root.End(trace.WithTimestamp(ended))
}

// Failed implements bridge.FailureObserver.
func (t *Tracer) Failed(lease int32, err error) {
	now := time.Now()
	_, span := t.tracer.Start(context.Background(), "retry", trace.WithNewRoot(), trace.WithTimestamp(now),
		trace.WithAttributes(attribute.Int("blobfeed.lease", int(lease))))
	fail(span, err, now)
	span.End(trace.WithTimestamp(now))
}

func fail(s trace.Span, err error, at time.Time) {
	if err != nil {
		text := plain.Clip(err.Error())
		s.RecordError(errors.New(text), trace.WithTimestamp(at))
		s.SetStatus(codes.Error, text)
	}
}
