package tracing

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// flushTimeout is how long a stop waits for a collector to take what is left.
const flushTimeout = 2 * time.Second

// Info is what spans tell of the instance. Name and Topic are empty in a process with many bridges: see Of.
type Info struct{ Name, Instance, Version, Topic string }

// Tracer makes spans of what the engine does.
type Tracer struct {
	provider    *sdk.TracerProvider
	tracer      trace.Tracer
	version     string
	log         *slog.Logger
	destination attribute.KeyValue
}

// Start returns a Tracer as the environment describes it, nil if it asks for none. There is one in a process:
// the SDK reports to what is set here for all of it. An error is one of the settings.
func Start(ctx context.Context, i Info, log *slog.Logger) (*Tracer, error) {
	host, err := collector()
	if host == "" || err != nil {
		return nil, err
	}
	var found problems
	otel.SetLogger(logr.New(&found))
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { found.Error(err, "OpenTelemetry") }))
	defer otel.SetLogger(logr.Discard())
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_*: %w", err)
	}
	res, err := describe(ctx, i)
	if err != nil {
		return nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	t := newTracer(i, log, sdk.NewTracerProvider(sdk.WithBatcher(exporter), sdk.WithResource(res)))
	if err := found.err(); err != nil {
		t.Stop()
		return nil, err
	}
	log.Info("sending traces", "collector", host)
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.Warn("traces are lost", "error", err) }))
	return t, nil
}

func newTracer(i Info, log *slog.Logger, p *sdk.TracerProvider) *Tracer {
	t := &Tracer{provider: p, version: i.Version, log: log}
	t.tracer, t.destination = p.Tracer(scope, trace.WithInstrumentationVersion(i.Version)), destination(i.Topic)
	return t
}

const scope = "blobfeed/bridge"

func destination(topic string) attribute.KeyValue {
	if strings.Contains(topic, "{") {
		return attribute.String("messaging.destination.template", topic)
	}
	return attribute.String("messaging.destination.name", topic)
}

// Of returns the Tracer of one of many bridges of the process. An attribute of the scope of its spans names the bridge.
// Only t is to be stopped.
func (t *Tracer) Of(name, topic string) *Tracer {
	one := *t
	one.tracer = t.provider.Tracer(scope, trace.WithInstrumentationVersion(t.version),
		trace.WithInstrumentationAttributes(attribute.String("blobfeed.name", name)))
	one.destination = destination(topic)
	return &one
}

// name returns the name of the bridge; many bridges have none in common.
func (i *Info) name() []attribute.KeyValue {
	if i.Name == "" {
		return nil
	}
	return []attribute.KeyValue{attribute.String("blobfeed.name", i.Name)}
}

// describe makes what all spans have in common. What the environment says comes last: it overrules.
func describe(ctx context.Context, i Info) (*resource.Resource, error) {
	return resource.New(ctx, resource.WithTelemetrySDK(), resource.WithAttributes(
		attribute.String("service.name", "blobfeed"), attribute.String("service.version", i.Version),
		attribute.String("service.instance.id", i.Instance),
	), resource.WithAttributes(i.name()...), resource.WithFromEnv())
}

// Stop sends what is left, if the collector takes it now.
func (t *Tracer) Stop() {
	ctx, cancel := context.WithTimeout(context.Background(), flushTimeout)
	defer cancel()
	if err := t.provider.Shutdown(ctx); err != nil {
		t.log.Warn("the last traces are lost", "error", err)
	}
}

// problems keeps what the SDK finds wrong with the environment, which it would go on without. It is a
// logr.LogSink. The values that come with an error are left out: a header may be a password.
type problems struct {
	mu   sync.Mutex
	errs []error
}

func (p *problems) Error(err error, msg string, _ ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.errs = append(p.errs, fmt.Errorf("OTEL_*: %s: %w", msg, err))
}

func (p *problems) err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return errors.Join(p.errs...)
}

func (p *problems) Enabled(int) bool               { return false }
func (p *problems) Init(logr.RuntimeInfo)          {}
func (p *problems) Info(int, string, ...any)       {}
func (p *problems) WithName(string) logr.LogSink   { return p }
func (p *problems) WithValues(...any) logr.LogSink { return p }
