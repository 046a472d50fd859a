package kafka

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
	"unicode"

	"blobfeed/internal/plain"
	"blobfeed/internal/testing/ceiling"
)

// FuzzRegistry: whatever a registry answers, the bridge has an id, a schema or a short error on one line, without its
// own password, in little memory and time.
func FuzzRegistry(f *testing.F) {
	for _, body := range []string{
		`{"id":7}`, `{"schema":"\"string\""}`, `{"error_code":40403,"message":"no schema"}`, `<html>`, ``, `[`, `{"id":1e99}`,
		`{"error_code":42201,"message":"Authorization: Basic bWU6cGxhbnRlZC1zZWNyZXQ= planted-secret\u001b[2J\n"}`,
		`{"schema":"` + strings.Repeat("x", 3000) + `"}`, strings.Repeat("[", 3000), "\x1f\x8b\x08\x00",
	} {
		for _, status := range []uint16{200, 206, 301, 401, 404, 409, 422, 500} {
			f.Add([]byte(body), status, status%2 == 0)
		}
	}
	var body []byte
	var status int
	var packed bool
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", "http://planted-secret@other.example/planted-secret")
		if packed {
			w.Header().Set("Content-Encoding", "gzip")
		}
		w.WriteHeader(status)
		_, _ = w.Write(body)
	}))
	f.Cleanup(s.Close)
	var registries []*Registry
	for _, lookUp := range []bool{false, true} {
		r := &Registry{URLs: []string{s.URL}, LookUpOnly: lookUp, Timeout: 10 * time.Second,
			Credentials: func() (string, string, error) { return "me", "planted-secret", nil }}
		if err := r.Open(); err != nil {
			f.Fatal(err)
		}
		registries = append(registries, r)
	}
	f.Fuzz(func(t *testing.T, b []byte, code uint16, gzip bool) {
		body, status, packed = b, 200+int(code)%400, gzip
		ceiling.Hold(t, 32<<20+100*uint64(len(b)), func() {
			for _, r := range registries {
				clear(r.ids.of)
				_, err := r.ID(t.Context(), "t-value", `"string"`)
				short(t, err)
				_, err = r.Schema(t.Context(), 1)
				short(t, err)
			}
		})
	})
}

func short(t *testing.T, err error) {
	t.Helper()
	if err == nil {
		return
	}
	text := err.Error()
	if len(text) > 4*plain.MaxText || strings.ContainsFunc(text, unicode.IsControl) ||
		strings.Contains(text, "planted-secret") || strings.Contains(text, "bWU6cGxhbnRlZC1zZWNyZXQ") {
		t.Errorf("%d bytes: %.3000q", len(text), text)
	}
}
