package main

import (
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"blobfeed/config"
)

func TestHealthcheck(t *testing.T) {
	status := http.StatusOK
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/healthz" {
			return
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte("stuck: lease 3\n"))
	}))
	defer srv.Close()
	_, port, err := net.SplitHostPort(srv.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(httpAddr, "0.0.0.0:"+port)
	expect := func(args string, code int, says string) {
		t.Helper()
		if have, stdout, stderr := call(t, strings.Fields(args)...); have != code || !strings.Contains(stdout+stderr, says) {
			t.Errorf("%s with %s: exit code %d: %s%s", args, httpAddr, have, stdout, stderr)
		}
	}
	expect("healthcheck", exitOK, "stuck")
	status = http.StatusServiceUnavailable
	expect("healthcheck", exitFailed, "not healthy: stuck: lease 3")
	expect("healthcheck --live", exitOK, "")
	srv.Close()
	expect("healthcheck", exitFailed, "localhost:"+port)
	t.Setenv(httpAddr, "off")
	expect("healthcheck", exitUsage, "nobody")
	t.Setenv(httpAddr, "8080")
	expect("healthcheck", exitUsage, "want [host]:port")
}

// A port that is taken is told where the settings name it. The default one is often taken, which stops nobody.
func TestPortTaken(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var log strings.Builder
	c := &config.Config{HTTPAddr: l.Addr().String()}
	logger := slog.New(slog.NewTextHandler(&log, nil))
	stop, err := serve(t.Context(), c, http.NotFoundHandler(), logger)
	if err != nil || !strings.Contains(log.String(), httpAddr) {
		t.Fatalf("as the default: %v, log %s", err, &log)
	}
	stop()
	t.Setenv(httpAddr, c.HTTPAddr)
	if _, err := serve(t.Context(), c, http.NotFoundHandler(), logger); err == nil || !strings.Contains(err.Error(), httpAddr) {
		t.Errorf("as a setting: %v", err)
	}
}
