package main

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"blobfeed/integration/pki"
	"blobfeed/internal/config"
)

const httpAddr = "BRIDGE_HTTP_ADDR"

func TestHealthcheck(t *testing.T) {
	t.Parallel()
	status, answer := http.StatusOK, "stuck: lease 3\n"
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/healthz" {
			return
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte(answer))
	}))
	defer srv.Close()
	_, port, err := net.SplitHostPort(srv.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	setenv(t, httpAddr, "0.0.0.0:"+port)
	expect := func(args string, code int, says string) {
		t.Helper()
		if have, stdout, stderr := call(t, strings.Fields(args)...); have != code ||
			!strings.Contains(stdout+stderr, says) {
			t.Errorf("%s with %s: exit code %d: %s%s", args, httpAddr, have, stdout, stderr)
		}
	}
	expect("healthcheck", exitOK, "stuck")
	status = http.StatusServiceUnavailable
	expect("healthcheck", exitFailed, "not healthy: stuck: lease 3")
	expect("healthcheck --live", exitOK, "")
	answer = "<!DOCTYPE HTML>\n<html>"
	expect("healthcheck", exitFailed, "another program answers at 0.0.0.0:"+port)
	srv.Close()
	expect("healthcheck", exitFailed, "asking the instance at http://localhost:"+port+": dial tcp")
	expect("healthcheck", exitFailed, "give this command the instance's BRIDGE_HTTP_ADDR")
	setenv(t, httpAddr, "off")
	expect("healthcheck", exitSettings, "no instance can answer")
	setenv(t, httpAddr, "8080")
	expect("healthcheck", exitSettings, "want [host]:port")
}

// A port that is taken is told where the settings name it. The default one is often taken, which stops nobody.
func TestPortTaken(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var log strings.Builder
	c := &config.Config{HTTPAddr: l.Addr().String()}
	logger := slog.New(slog.NewTextHandler(&log, nil))
	stop, err := serve(t.Context(), c, true, http.NotFoundHandler(), logger)
	if err != nil || !strings.Contains(log.String(), httpAddr) {
		t.Fatalf("as the default: %v, log %s", err, &log)
	}
	stop()
	setAll(t, map[string]string{"SOURCE_URL": "file:///feed", "HTTP_ADDR": c.HTTPAddr})
	if c, err = environ(t).Load(false); err != nil {
		t.Fatal(err)
	}
	if _, err := serve(t.Context(), c, true, http.NotFoundHandler(), logger); err == nil ||
		!strings.Contains(err.Error(), httpAddr) {
		t.Errorf("as a setting: %v", err)
	}
}

// With --once an instance runs beside one that has the port, with the same settings.
func TestPortTakenByAnotherInstance(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	clusterFor(t)
	setenv(t, httpAddr, l.Addr().String())
	if code, _, stderr := call(t, "run", "--once"); code != exitOK || !strings.Contains(stderr, "not serving HTTP") {
		t.Errorf("run --once: exit code %d: %s", code, stderr)
	}
	if code, _, stderr := call(t, "run"); code != exitSettings || !strings.Contains(stderr, httpAddr) {
		t.Errorf("run: exit code %d: %s", code, stderr)
	}
}

// With a certificate and a token, answers are encrypted and need the token. Both follow a rotation of their files. The
// health check needs neither.
func TestServeTLS(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	authority, err := pki.New("test")
	if err != nil {
		t.Fatal(err)
	}
	issue := func() (cert, key string) {
		pair, err := authority.Issue("bridge", time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		if cert, key, err = pair.Write(dir, "http"); err != nil {
			t.Fatal(err)
		}
		return cert, key
	}
	token := filepath.Join(dir, "token")
	write := func(text string) {
		if err := os.WriteFile(token, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cert, key := issue()
	write("first")
	setAll(t, map[string]string{
		"SOURCE_URL": "file://" + dir, "HTTP_ADDR": "127.0.0.1:0", "HTTP_CERT_FILE": cert, "HTTP_KEY_FILE": key,
		"HTTP_TOKEN_FILE": token,
	})
	c, err := environ(t).Load(false)
	if err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	logger := slog.New(slog.NewTextHandler(&log, nil))
	answers := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ready") })
	stop, err := serve(t.Context(), c, true, guard(c, logger).Wrap(answers), logger)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	_, address, _ := strings.Cut(log.String(), "address=")
	address, _, _ = strings.Cut(address, " ")
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority.PEM)
	get := func(token string) (status int, serial string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+address+"/status", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+token)
		tr := &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: roots}}
		resp, err := (&http.Client{Transport: tr}).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		return resp.StatusCode, resp.TLS.PeerCertificates[0].SerialNumber.String()
	}
	status, before := get("first")
	if other, _ := get("token-2"); status != http.StatusOK || other != http.StatusUnauthorized {
		t.Errorf("with the token %d, with another one %d", status, other)
	}
	issue()
	write("token-2")
	status, after := get("token-2")
	if other, _ := get("first"); status != http.StatusOK || other != http.StatusUnauthorized || before == after {
		t.Errorf("after a rotation: with the token %d, with the old one %d, certificates %s and %s", status, other,
			before, after)
	}
	for why, spoil := range map[string]func() error{
		"is empty": func() error { return os.WriteFile(token, nil, 0o600) },
		"is gone":  func() error { return os.Remove(token) },
	} {
		if err := spoil(); err != nil {
			t.Fatal(err)
		}
		status, _ = get("token-2")
		if other, _ := get("first"); status != http.StatusOK || other != http.StatusUnauthorized {
			t.Errorf("the file %s: with the last token %d, with the one before %d", why, status, other)
		}
		write("token-2")
	}

	write("")
	if status, _ := get(""); status != http.StatusUnauthorized {
		t.Errorf("with an empty file: %d", status)
	}
	setenv(t, httpAddr, address)
	if code, stdout, stderr := call(t, "healthcheck"); code != exitOK || !strings.Contains(stdout, "ready") {
		t.Errorf("healthcheck: exit code %d: %s%s", code, stdout, stderr)
	}
}
