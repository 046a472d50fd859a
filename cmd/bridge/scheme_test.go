package main

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// A server without TLS stays one: the first answer says so, and no other request waits for another.
func TestSourceWithoutTLS(t *testing.T) {
	t.Parallel()
	var connections atomic.Int32
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	s.Start()
	defer s.Close()
	setAll(t, map[string]string{"SOURCE_URL": strings.Replace(s.URL, "http:", "https:", 1) + "/account",
		"SOURCE_AUTH": "shared_key", "SOURCE_ACCOUNT": "account", "SOURCE_KEY": "a2V5"})
	code, _, stderr := call(t, "dump")
	if code != exitFailed || connections.Load() != 1 ||
		!strings.Contains(stderr, "the server does not speak TLS: check the port in BRIDGE_SOURCE_URL") {
		t.Errorf("exit code %d, %d connections: %s", code, connections.Load(), stderr)
	}
}
