package ops

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"blobfeed/internal/plain"
	"blobfeed/internal/status"
)

// Handler serves the monitor and its metrics.
//
//	/         the status page
//	/healthz  200 while the process can answer
//	/readyz   200, or 503 with one reason per line
//	/status   a Status, as JSON
//	/history  the last hour: a History, as JSON
//	/segments what the feed holds: Segments, as JSON
//	/metrics  for Prometheus
func Handler(m *Monitor, metrics http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { text(w, http.StatusOK, "ok\n") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		s := m.Snapshot()
		ready(w, s.Ready, lines(s.Reasons, ""))
	})
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, _ *http.Request) { document(w, m.Snapshot()) })
	mux.HandleFunc("GET /history", func(w http.ResponseWriter, _ *http.Request) { document(w, m.LastHour()) })
	mux.HandleFunc("GET /segments", func(w http.ResponseWriter, r *http.Request) {
		document(w, m.Segments(r.Context()))
	})
	mux.Handle("GET /metrics", metrics)
	mux.HandleFunc("GET /{$}", servePage(page))
	return mux
}

// ready answers a probe of readiness.
func ready(w http.ResponseWriter, yes bool, reasons string) {
	if yes {
		text(w, http.StatusOK, "ready\n")
		return
	}
	text(w, http.StatusServiceUnavailable, reasons)
}

// lines returns a line for each reason.
func lines(reasons []Reason, prefix string) string {
	var body strings.Builder
	for _, r := range reasons {
		if body.WriteString(prefix); r.Code != "failed" { // which its detail says
			body.WriteString(r.Code + ": ")
		}
		body.WriteString(plain.Line(status.Problem{Cause: r.Detail, Remedy: r.Remedy}.String()) + "\n")
	}
	return body.String()
}

func document(w http.ResponseWriter, doc any) {
	body, err := json.Marshal(doc)
	if err != nil {
		text(w, http.StatusInternalServerError, err.Error()+"\n")
		return
	}
	write(w, http.StatusOK, "application/json", append(body, '\n'))
}

func text(w http.ResponseWriter, status int, body string) {
	write(w, status, "text/plain; charset=utf-8", []byte(body))
}

func write(w http.ResponseWriter, status int, contentType string, body []byte) {
	h := w.Header()
	h.Set("Content-Type", contentType)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(body) // fails if the client is gone
}

// writeTimeout is for a client to take an answer, and for the answer to be made.
const writeTimeout = 5 * time.Second

// Serve answers on l until ctx ends, and finishes requests that came before.
func Serve(ctx context.Context, l net.Listener, h http.Handler) error {
	srv := &http.Server{
		Handler: h, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 5 * time.Second, WriteTimeout: writeTimeout,
		IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 16 << 10,
	}
	limits := &connections{most: maxConnections, perAddress: maxPerAddress, turns: make(chan struct{}, maxAnswers)}
	limits.limit(srv)
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(l) }()
	select {
	case err := <-ended:
		return fmt.Errorf("serving HTTP: %w", err)
	case <-ctx.Done():
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if err := srv.Shutdown(last); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("closing the HTTP server: %w", err)
	}
	return nil
}
