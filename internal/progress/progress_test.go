package progress

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"blobfeed/bridge"
	"blobfeed/internal/config"
)

// A failure of the instance names no lease.
func TestFailureNamesItsLease(t *testing.T) {
	var log bytes.Buffer
	_, p := New(&config.Config{LogFormat: "json"}, &log)
	p.Failed(3, errors.New("of a lease"))
	p.Failed(-1, errors.New("of the instance"))
	if s := log.String(); strings.Count(s, `"lease"`) != 1 || !strings.Contains(s, `"lease":3,"error":"of a lease"`) ||
		!strings.Contains(s, "of the instance") {
		t.Error(s)
	}
}

// Only the first report on history is logged: in steady state the log is quiet for days.
func TestHistoryIsLoggedOnce(t *testing.T) {
	var log bytes.Buffer
	_, p := New(&config.Config{LogFormat: "json"}, &log)
	for range 3 {
		p.History(bridge.History{Headroom: time.Hour})
	}
	if n := strings.Count(log.String(), `"headroom_seconds":3600`); n != 1 {
		t.Errorf("%d times:\n%s", n, log.String())
	}
}
