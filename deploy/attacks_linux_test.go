package deploy

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"blobfeed/internal/testing/fakebroker"
	"blobfeed/internal/testing/feedsim"
)

// attackLimit is what the program may take under an attack that this file makes.
const attackLimit = 200 << 20

// small writes a feed.
func small(t *testing.T) (url string) {
	t.Helper()
	dir := t.TempDir()
	spec := feedsim.Spec{Shards: 2, EventsPerSegment: 20, Segments: 2}
	if err := feedsim.Write(t.Context(), feedsim.Dir(dir), spec, nil); err != nil {
		t.Fatal(err)
	}
	return "file://" + dir
}

// A registry that answers with 206, or 401, and a gigabyte in a megabyte of gzip costs no memory; what it repeats of the
// credentials is in no log.
func TestHostileRegistry(t *testing.T) {
	t.Parallel()
	var part bytes.Buffer
	w := gzip.NewWriter(&part)
	_, _ = w.Write(make([]byte, 1<<20)) // to memory
	_ = w.Close()
	bomb := bytes.Repeat(part.Bytes(), 1<<10) // streams follow each other
	for name, answer := range map[string]http.HandlerFunc{
		"206": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			w.WriteHeader(http.StatusPartialContent)
			_, _ = w.Write(bomb)
		},
		"echo": func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusUnauthorized)
			_, password, _ := r.BasicAuth()
			fmt.Fprintf(w, `{"error_code":40101,"message":"not %s, %s"}`, password, r.Header.Get("Authorization"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			registry := httptest.NewServer(answer)
			defer registry.Close()
			cmd := exec.CommandContext(t.Context(), program, "run", "--once")
			cmd.Env = append(os.Environ(), "BRIDGE_SOURCE_URL="+small(t), "BRIDGE_FORMAT=avro", "BRIDGE_HTTP_ADDR=off",
				"BRIDGE_KAFKA_BROKERS="+fakebroker.New(t).ListenAddrs()[0], "BRIDGE_REGISTRY_URL="+registry.URL,
				"BRIDGE_REGISTRY_USERNAME=me", "BRIDGE_REGISTRY_PASSWORD=planted-secret")
			log, peak, err := measured(t, cmd)
			t.Logf("a peak of %d MiB", peak>>20)
			encoded := base64.StdEncoding.EncodeToString([]byte("me:planted-secret"))
			if err == nil || peak > attackLimit || strings.Contains(log, "planted-secret") || strings.Contains(log, encoded) {
				t.Errorf("%v, a peak of %d MiB:\n%.3000s", err, peak>>20, log)
			}
		})
	}
}

// A storage service that repeats a signature as the code of its errors, or answers each read with another ETag and breaks
// off, is reported, and the program runs on.
func TestHostileStorage(t *testing.T) {
	t.Parallel()
	n := 0
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		says   string
	}{
		"echo": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X-Ms-Error-Code", r.URL.RawQuery)
			w.WriteHeader(http.StatusForbidden)
		}, "answered 403"},
		"etags": {func(w http.ResponseWriter, r *http.Request) {
			n++
			w.Header().Set("Etag", fmt.Sprint(n))
			var from int
			_, _ = fmt.Sscanf(r.Header.Get("X-Ms-Range"), "bytes=%d-", &from) // of our own client
			w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-99/100", from))
			w.Header().Set("Content-Length", fmt.Sprint(100-from))
			w.WriteHeader(http.StatusPartialContent)
			_, _ = w.Write([]byte("{"))
		}, "another ETag"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storage := httptest.NewServer(c.answer)
			defer storage.Close()
			p := start(t, program, []string{"BRIDGE_SOURCE_URL=" + storage.URL + "/acct", "BRIDGE_SOURCE_AUTH=sas",
				"BRIDGE_SOURCE_SAS=sv=2026&sp=rl&sig=planted-signature", "BRIDGE_HTTP_ADDR=127.0.0.1:0",
				"BRIDGE_NETWORK_TIMEOUT=5s", "BRIDGE_KAFKA_BROKERS=" + fakebroker.New(t).ListenAddrs()[0]}, "run")
			base := p.address(t)
			p.until(t, "the error", func() bool { return strings.Contains(p.log.String(), c.says) })
			shown := p.log.String() + get(base+"/status") + get(base+"/readyz")
			if strings.Contains(shown, "planted-signature") {
				t.Errorf("the signature is shown:\n%.3000s", shown)
			}
			p.within(t, attackLimit)
			p.stop(t)
		})
	}
}

// Clients that keep connections inside of handlers, from many addresses, do not keep out a probe.
func TestHostileClients(t *testing.T) {
	p := start(t, program, []string{"BRIDGE_SOURCE_URL=" + small(t), "BRIDGE_HTTP_ADDR=127.0.0.1:0",
		"BRIDGE_KAFKA_BROKERS=" + fakebroker.New(t).ListenAddrs()[0]}, "run")
	base := p.address(t)
	for i := range 200 {
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 1, byte(1+i%8))}}
		conn, err := d.Dial("tcp", strings.TrimPrefix(base, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		for range 500 { // more answers than socket buffers hold
			fmt.Fprint(conn, "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
		}
	}
	client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	for i := range 50 {
		answer, err := client.Get(base + "/healthz")
		if err != nil {
			t.Fatalf("probe %d: %v", i, err)
		}
		_ = answer.Body.Close()
	}
	p.within(t, attackLimit)
	p.stop(t)
}

// A writer of files that the settings name can neither hang a start, nor fill its memory, nor open the server.
func TestHostileFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	fifo, empty, names := filepath.Join(dir, "fifo"), filepath.Join(dir, "empty"), filepath.Join(dir, "names.yaml")
	var text strings.Builder
	text.WriteString("bridges:\n")
	for i := 0; text.Len() < 900<<10; i++ {
		fmt.Fprintf(&text, " x%d:\n", i)
	}
	err := syscall.Mkfifo(fifo, 0o600)
	for path, content := range map[string]string{empty: "", names: text.String()} {
		if err == nil {
			err = os.WriteFile(path, []byte(content), 0o600)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ env, says string }{
		"a FIFO as settings":   {"BRIDGE_CONFIG=" + fifo, "not a regular file"},
		"a device as settings": {"BRIDGE_CONFIG=/dev/zero", "not a regular file"},
		"many names":           {"BRIDGE_CONFIG=" + names, "more than a process can run"},
		"an empty token":       {"BRIDGE_HTTP_TOKEN_FILE=" + empty, "is empty"},
		"a FIFO as token":      {"BRIDGE_HTTP_TOKEN_FILE=" + fifo, "not a regular file"},
		"a device as token":    {"BRIDGE_HTTP_TOKEN_FILE=/dev/zero", "not a regular file"},
		"an empty password":    {"BRIDGE_KAFKA_SASL_PASSWORD_FILE=" + empty, "is empty"},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), program, "run")
			cmd.Env = append(os.Environ(), "BRIDGE_SOURCE_URL=file:///nowhere", "BRIDGE_KAFKA_BROKERS=127.0.0.1:1", c.env)
			began := time.Now()
			log, peak, err := measured(t, cmd)
			took := time.Since(began)
			t.Logf("%s, a peak of %d MiB", took, peak>>20)
			if cmd.ProcessState.ExitCode() != 78 || !strings.Contains(log, c.says) || took > 20*time.Second ||
				peak > attackLimit {
				t.Errorf("%v after %s, a peak of %d MiB:\n%.1000s", err, took, peak>>20, log)
			}
		})
	}
}

// A token that was replaced stays invalid when its file becomes a FIFO, and no request waits for it.
func TestHostileToken(t *testing.T) {
	t.Parallel()
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("first-token"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := start(t, program, []string{"BRIDGE_SOURCE_URL=" + small(t), "BRIDGE_HTTP_ADDR=127.0.0.1:0",
		"BRIDGE_HTTP_TOKEN_FILE=" + token, "BRIDGE_KAFKA_BROKERS=" + fakebroker.New(t).ListenAddrs()[0]}, "run")
	base := p.address(t)
	client := &http.Client{Timeout: 10 * time.Second}
	status := func(token string) int {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+"/status", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+token)
		answer, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		_, _ = io.Copy(io.Discard, answer.Body)
		return answer.StatusCode
	}
	if got := status("first-token"); got != 200 {
		t.Errorf("%d", got)
	}
	if err := os.WriteFile(token, []byte("second-token"), 0o600); err != nil {
		t.Fatal(err)
	}
	if first, second := status("first-token"), status("second-token"); first != 401 || second != 200 {
		t.Errorf("%d, %d", first, second)
	}
	if err := os.Remove(token); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(token, 0o600); err != nil {
		t.Fatal(err)
	}
	if first, second := status("first-token"), status("second-token"); first != 401 || second != 200 {
		t.Errorf("%d, %d", first, second)
	}
	p.within(t, attackLimit)
	p.stop(t)
}
