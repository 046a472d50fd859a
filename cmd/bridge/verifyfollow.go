package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"blobfeed/internal/config"
	"blobfeed/verify/judge"
)

// follower shows what bridge verify --follow has verified, on its output and over HTTP.
type follower struct {
	log    *slog.Logger
	stdout io.Writer
	asJSON bool

	registry                    *prometheus.Registry
	through                     *prometheus.GaugeVec
	records, violations, failed *prometheus.CounterVec

	mu     sync.Mutex
	topics map[string]*followedTopic
}

// followedTopic is what /status says of a topic.
type followedTopic struct {
	Topic           string    `json:"topic"`
	VerifiedThrough time.Time `json:"verified_through"`
	Records         int64     `json:"records"`
	Broken          []string  `json:"broken"` // checks
}

func newFollower(log *slog.Logger, stdout io.Writer, asJSON bool) *follower {
	f := &follower{log: log, stdout: stdout, asJSON: asJSON, registry: prometheus.NewRegistry(),
		topics: map[string]*followedTopic{}}
	f.through = prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "bridge_verify_verified_through_seconds",
		Help: "Time of the marker up to which the topic is verified, in seconds since 1970."}, []string{"topic"})
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
		f.registry.MustRegister(c)
		return c
	}
	f.registry.MustRegister(f.through)
	f.records = counter("bridge_verify_records_total", "Verified records.", "topic")
	f.violations = counter("bridge_verify_violations_total", "Broken promises.", "topic", "check")
	f.failed = counter("bridge_verify_errors_total", "Rounds that failed and are retried.")
	f.failed.WithLabelValues()
	return f
}

// verified takes the reports of a round.
func (f *follower) verified(reports []*judge.Report, through time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range reports {
		t := f.topics[r.Topic]
		if t == nil {
			t = &followedTopic{Topic: r.Topic, Broken: []string{}}
			f.topics[r.Topic] = t
		}
		t.Records += r.Records
		f.records.WithLabelValues(r.Topic).Add(float64(r.Records))
		for _, check := range r.Broken() {
			t.Broken = append(t.Broken, check)
			f.violations.WithLabelValues(r.Topic, check).Inc()
		}
		if len(t.Broken) > 0 {
			f.show(r)
			continue
		}
		t.VerifiedThrough = through.UTC()
		f.through.WithLabelValues(r.Topic).Set(float64(through.Unix()))
		f.log.Info("verified", "topic", r.Topic, "through", t.VerifiedThrough.Format(time.RFC3339Nano),
			"records", t.Records)
	}
}

func (f *follower) show(r *judge.Report) {
	if err := printReport(f.stdout, r, f.asJSON); err != nil {
		f.log.Error("printing the report failed", "error", err)
	}
}

func (f *follower) retries(err error) {
	f.failed.WithLabelValues().Inc()
	f.log.Warn("verifying failed, and is retried", "error", err)
}

// handler answers the probes, /status and /metrics.
func (f *follower) handler() http.Handler {
	mux := http.NewServeMux()
	ok := func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") }
	mux.HandleFunc("GET /healthz", ok)
	mux.HandleFunc("GET /readyz", ok)
	mux.Handle("GET /metrics", promhttp.HandlerFor(f.registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, _ *http.Request) {
		f.mu.Lock()
		all := []followedTopic{}
		for _, t := range f.topics {
			all = append(all, *t)
		}
		f.mu.Unlock()
		slices.SortFunc(all, func(a, b followedTopic) int { return strings.Compare(a.Topic, b.Topic) })
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"topics": all}) // fails if the client is gone
	})
	return mux
}

// follow verifies as the topics grow, until a promise is broken.
func follow(
	ctx context.Context, c *config.Config, o judge.Options, log *slog.Logger, stdout io.Writer, asJSON bool,
) error {
	f := newFollower(log, stdout, asJSON)
	stop, err := serve(ctx, c, true, guard(c, log).Wrap(f.handler()), log)
	if err != nil {
		return err
	}
	defer stop()
	err = judge.Follow(ctx, o, judge.Followed{Verified: f.verified, Failed: f.retries})
	if ctx.Err() != nil {
		return nil // stopped by a signal
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(stdout, "verified: everything up to BRIDGE_END_TIME")
	return err
}
