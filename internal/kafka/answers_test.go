package kafka

import (
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"blobfeed/internal/outbound"
	"blobfeed/internal/plain"
)

// Credentials go to no address but the one that the settings name, and no other address is believed: whatever the
// redirect is, from https to http, or to another host.
func TestRegistryRedirects(t *testing.T) {
	for _, status := range []int{301, 302, 303, 307, 308} {
		var asked atomic.Int64
		other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked.Add(1)
			fmt.Fprint(w, `{"id":7,"subject":"t-value","version":1,"is_compatible":true}`)
		}))
		defer other.Close()
		registry := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other.URL+r.URL.Path+"?token=hunter2", status)
		}))
		defer registry.Close()
		ca := filepath.Join(t.TempDir(), "ca.crt")
		write(t, ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: registry.Certificate().Raw}))
		credentials := func() (string, string, error) { return "me", "hunter2", nil }
		for _, lookUp := range []bool{false, true} {
			r := opened(t, Registry{URLs: []string{registry.URL}, LookUpOnly: lookUp, TLS: TLS{CAFile: ca},
				Credentials: credentials})
			id, err := r.ID(t.Context(), "t-value", schema)
			if err == nil || asked.Load() > 0 {
				t.Fatalf("%d: id %d, %d requests elsewhere, %v", status, id, asked.Load(), err)
			}
			if text := err.Error(); !strings.Contains(text, other.URL) || !strings.Contains(text, fmt.Sprint(status)) ||
				strings.Contains(text, "hunter2") {
				t.Errorf("%d: %v", status, err)
			}
			var elsewhere *outbound.RedirectError
			if _, err := r.Endpoints()[0].Subjects(t.Context()); !errors.As(err, &elsewhere) || asked.Load() > 0 {
				t.Errorf("%d: %d requests elsewhere, %v", status, asked.Load(), err)
			}
		}
	}
}

// The first registry redirects, the second is one.
func TestRegistryAfterRedirect(t *testing.T) {
	away := httptest.NewServer(http.RedirectHandler("https://registry.example/", http.StatusFound))
	defer away.Close()
	good := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"id":3}`)
	}))
	defer good.Close()
	if got := id(t, opened(t, Registry{URLs: []string{away.URL, good.URL}}), "t-value"); got != 3 {
		t.Errorf("id %d", got)
	}
}

// endless sends zeros of JSON until nobody reads on, and reports how many bytes were taken.
func endless(begin string) (*httptest.Server, *atomic.Int64) {
	var sent atomic.Int64
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		part := []byte(strings.Repeat("0", 64<<10))
		n, err := io.WriteString(w, begin)
		for ; err == nil && sent.Load() < 64<<20; n, err = w.Write(part) {
			sent.Add(int64(n))
		}
	})), &sent
}

func TestAnswersAreBounded(t *testing.T) {
	s, sent := endless(`{"id":1`)
	defer s.Close()
	_, err := opened(t, Registry{URLs: []string{s.URL}}).ID(t.Context(), "t-value", schema)
	if err == nil || !strings.Contains(err.Error(), "above the limit") || sent.Load() > 16<<20 {
		t.Errorf("registry: %d bytes, %v", sent.Load(), err)
	}
	s, sent = endless(`{"access_token":"`)
	defer s.Close()
	c := &ClientCredentials{URL: s.URL, Client: func() (string, string, error) { return "bridge", "secret", nil }}
	if _, err := c.Token(t.Context()); err == nil || !strings.Contains(err.Error(), "above the limit") ||
		sent.Load() > 16<<20 {
		t.Errorf("token: %d bytes, %v", sent.Load(), err)
	}
}

// What a registry says of itself is kept short, and on one line.
func TestRegistryErrorsAreShort(t *testing.T) {
	for _, status := range []int{404, 409, 422, 500} {
		for _, body := range []string{strings.Repeat("x\x1b[2J\n", 100_000), `{"error_code":1,"message":"` +
			strings.Repeat(`\n\u001b`, 100_000) + `"}`} {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(status)
				_, _ = io.WriteString(w, body)
			}))
			_, err := opened(t, Registry{URLs: []string{s.URL}}).ID(t.Context(), "t-value", schema)
			s.Close()
			if err == nil || len(err.Error()) > 3*plain.MaxText || strings.ContainsAny(err.Error(), "\n\x1b") {
				t.Errorf("%d: %d bytes", status, len(err.Error()))
			}
		}
	}
}

// A token server that repeats what it was sent, or sends us elsewhere, puts nothing of it into an error.
func TestTokenServerEchoes(t *testing.T) {
	var asked atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		fmt.Fprint(w, `{"access_token":"evil"}`)
	}))
	defer other.Close()
	for name, answer := range map[string]http.HandlerFunc{
		"description": func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprintf(w, `{"error":"invalid_client","error_description":%q}`,
				"bad header "+r.Header.Get("Authorization"))
		},
		"error": func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprintf(w, `{"error":%q}`, r.Header.Get("Authorization"))
		},
		"redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other.URL+"/"+r.Header.Get("Authorization"), http.StatusPermanentRedirect)
		},
	} {
		s := httptest.NewServer(answer)
		c := &ClientCredentials{URL: s.URL, Client: func() (string, string, error) { return "bridge", "hunter2", nil }}
		token, err := c.Token(t.Context())
		s.Close()
		var elsewhere *outbound.RedirectError
		switch {
		case err == nil || asked.Load() > 0:
			t.Errorf("%s: %q, %d requests elsewhere", name, token, asked.Load())
		case strings.Contains(err.Error(), "YnJpZGdl") || strings.Contains(err.Error(),
			"hunter2"): // base64 of the user
			t.Errorf("%s: %v", name, err)
		case name == "redirect" && (!errors.As(err, &elsewhere) || elsewhere.To != other.URL):
			t.Errorf("%s: %v", name, err)
		case name == "description" && !strings.Contains(err.Error(), "invalid_client"):
			t.Errorf("%s: %v", name, err)
		}
	}
}
