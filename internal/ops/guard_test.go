package ops

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// asked returns the status of a request for a path at a host.
func asked(t *testing.T, g *Guard, host, path string, change func(*http.Request)) int {
	t.Helper()
	h := g.Wrap(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { text(w, http.StatusOK, "secret") }))
	r := httptest.NewRequest(http.MethodGet, path, nil)
	r.Host = host
	if change != nil {
		change(r)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if shown := strings.Contains(w.Body.String(), "secret"); shown != (w.Code == http.StatusOK) {
		t.Errorf("%s%s: %d %s", host, path, w.Code, w.Body)
	}
	return w.Code
}

// A page of an attacker's whose name leads to our address (DNS rebinding) sees nothing. The probes are open.
func TestHosts(t *testing.T) {
	for _, c := range []struct {
		host    string
		allowed []string
		status  int
	}{
		{"attacker.example:8080", nil, 421},
		{"attacker.example.", nil, 421},
		{"127.0.0.1.attacker.example", nil, 421},
		{"attacker.example:8080:8080", nil, 421},
		{"[::1].attacker.example", nil, 421},
		{"127.0.0.1:8080", nil, 200},
		{"10.1.2.3", nil, 200},
		{"[::1]:8080", nil, 200},
		{"localhost:8080", nil, 200},
		{"bridge", nil, 200},
		{"bridge.blobfeed.svc:8080", nil, 421},
		{"Bridge.Blobfeed.svc:8080", []string{"other", "bridge.blobfeed.svc"}, 200},
		{"attacker.example", []string{"bridge.blobfeed.svc"}, 421},
		{"attacker.example", []string{"*"}, 200},
	} {
		for _, path := range []string{"/", "/status", "/metrics", "/healthz/../status"} {
			if status := asked(t, &Guard{Hosts: c.allowed}, c.host, path, nil); status != c.status {
				t.Errorf("%s at %s, allowed %q: %d", path, c.host, c.allowed, status)
			}
		}
		for _, path := range []string{"/healthz", "/readyz"} {
			if status := asked(t, &Guard{Hosts: c.allowed}, c.host, path, nil); status != http.StatusOK {
				t.Errorf("%s at %s: %d", path, c.host, status)
			}
		}
	}
}

// With a token only requests that bear it see something; one that is empty, as a file may be for a moment, opens
// nothing.
func TestToken(t *testing.T) {
	const token = "hunter2"
	bearer := func(s string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set("Authorization", s) }
	}
	for _, c := range []struct {
		what   string
		token  string
		change func(*http.Request)
		status int
	}{
		{"nothing", token, nil, 401},
		{"the token", token, bearer("Bearer hunter2"), 200},
		{"as a password", token, func(r *http.Request) { r.SetBasicAuth("me", token) }, 200},
		{"as a user", token, func(r *http.Request) { r.SetBasicAuth(token, "") }, 401},
		{"another one", token, bearer("Bearer hunter3"), 401},
		{"a part", token, bearer("Bearer hunter"), 401},
		{"an empty one", token, bearer("Bearer "), 401},
		{"an empty one, where the file is empty", "", bearer("Bearer "), 401},
		{"nothing, where the file is empty", "", nil, 401},
	} {
		g := &Guard{Token: func() string { return c.token }}
		if status := asked(t, g, "localhost", "/status", c.change); status != c.status {
			t.Errorf("%s: %d", c.what, status)
		}
		if status := asked(t, g, "localhost", "/readyz", c.change); status != http.StatusOK {
			t.Errorf("%s: /readyz: %d", c.what, status)
		}
	}
}
