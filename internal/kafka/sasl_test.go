package kafka

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"blobfeed/internal/testing/fakebroker"
)

// Each mechanism gets in with the right password, and asks for it anew each time: it may have been replaced.
func TestPasswords(t *testing.T) {
	for _, mechanism := range Mechanisms[:3] {
		fake := fakebroker.New(t, kfake.EnableSASL(), kfake.Superuser(mechanism, "bridge", "new"))
		pass := "old"
		c := &Client{
			Brokers: fake.ListenAddrs(),
			SASL: &SASL{Mechanism: mechanism, Credentials: func() (string, string, error) {
				return "bridge", pass, nil
			}},
		}
		if err := ping(t, c); err == nil {
			t.Errorf("%s: a wrong password gets in", mechanism)
		}
		pass = "new"
		if err := ping(t, c); err != nil {
			t.Errorf("%s: %v", mechanism, err)
		}
		gone := errors.New("the file is gone")
		c.SASL.Credentials = func() (string, string, error) { return "", "", gone }
		if err := ping(t, c); !errors.Is(err, gone) || !errors.As(err, new(net.Error)) {
			t.Errorf("%s: without its file: %v", mechanism, err)
		}
	}
	if _, err := (&Client{Compression: "none", SASL: &SASL{Mechanism: "GSSAPI"}}).Options(); err == nil {
		t.Error("GSSAPI was accepted")
	}
}

// A server of tokens that is down, and a certificate that is half replaced, are errors of a connection to those who read
// topics, whatever the reason: see offsets.View.
func TestConnectionErrors(t *testing.T) {
	fake := fakebroker.New(t)
	fake.ControlKey(int16(kmsg.SASLHandshake), func(req kmsg.Request) (kmsg.Response, error, bool) {
		fake.KeepControl()
		return req.ResponseKind(), nil, true // as a broker that takes tokens, which kfake does not
	})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer server.Close()
	written := filepath.Join(t.TempDir(), "half.crt")
	write(t, written, nil)
	tokens := &ClientCredentials{URL: server.URL, Client: func() (string, string, error) { return "a", "b", nil }}
	for what, c := range map[string]*Client{
		"token": {SASL: &SASL{Mechanism: "OAUTHBEARER", Token: tokens.Token}},
		"files": {TLS: &TLS{CAFile: written}},
	} {
		c.Brokers = fake.ListenAddrs()
		if err := ping(t, c); !errors.As(err, new(net.Error)) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// A token is asked for with the secret as it is then, used again, and renewed before its end.
func TestClientCredentials(t *testing.T) {
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id, secret, ok := r.BasicAuth()
		if !ok || id != "bridge" || secret != "s%3Acret" || r.PostFormValue("grant_type") != "client_credentials" ||
			r.PostFormValue("scope") != "kafka" {
			t.Errorf("asked as %s with %v", id, r.PostForm)
		}
		fmt.Fprintf(w, `{"access_token":"token-%d","expires_in":100}`, asked.Add(1))
	}))
	defer server.Close()
	c := &ClientCredentials{
		URL:    server.URL,
		Scope:  "kafka",
		Client: func() (string, string, error) { return "bridge", "s:cret", nil },
	}
	expect := func(want string) {
		t.Helper()
		if got, err := c.Token(t.Context()); got != want || err != nil {
			t.Errorf("%q, %v, want %q", got, err, want)
		}
	}
	expect("token-1")
	if life := time.Until(c.renew); life < 70*time.Second || life > 80*time.Second {
		t.Errorf("it is renewed after %s, want 80 s", life)
	}
	expect("token-1")
	c.renew = time.Now()
	expect("token-2")
}

// The code of an OAuth server's refusal is passed on; what else it may say is not, nor any secret.
func TestClientCredentialsRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		answer http.HandlerFunc
		says   string
	}{
		"by the book": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusUnauthorized)
			_ = json.NewEncoder(w).Encode(map[string]string{"error": "invalid_client",
				"error_description": "secret expired"})
		}, "invalid_client"},
		"a page": {func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "<html>hunter2", http.StatusBadGateway)
		}, "502 Bad Gateway"},
		"no token": {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{}`) }, "no access_token"},
		"elsewhere": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://127.0.0.1:1/hunter2", http.StatusTemporaryRedirect)
		},
			"307"},
	} {
		server := httptest.NewServer(tc.answer)
		c := &ClientCredentials{
			URL:    server.URL + "?key=hunter2",
			Client: func() (string, string, error) { return "bridge", "hunter2", nil },
		}
		_, err := c.Token(t.Context())
		server.Close()
		if err == nil || !strings.Contains(err.Error(), tc.says) || !strings.Contains(err.Error(), "127.0.0.1") {
			t.Errorf("%s: %v", name, err)
		} else if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s shows a secret: %v", name, err)
		}
		if _, err := c.Token(t.Context()); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s, server gone: %v", name, err)
		}
	}
}
