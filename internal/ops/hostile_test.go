package ops

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"blobfeed/bridge"
)

// What /readyz and /status say of an error is short, forges no line, and does nothing to a terminal.
func TestHostileErrors(t *testing.T) {
	m, metrics, _ := busy(t)
	h := Handler(m, metrics)
	m.Leased(bridge.LeasesLost, nil)
	m.Failed(-1, errors.New("a\x1b[2J\r\nready: all is well\u009b\x7f"))
	code, body, _ := get(t, h, "/readyz")
	if code != http.StatusServiceUnavailable || strings.Count(body, "\n") != 1 || strings.ContainsAny(body,
		"\x1b\r\x7f\u009b") || !strings.Contains(body, `\u001b[2J`) {
		t.Errorf("%d %q", code, body)
	}
	m.Failed(-1, errors.New(strings.Repeat("x", 52<<20)))
	for _, path := range []string{"/readyz", "/status"} {
		if _, body, _ := get(t, h, path); len(body) > 32<<10 || !strings.Contains(body, "bytes more") {
			t.Errorf("%s has %d bytes", path, len(body))
		}
	}
}
