package ops

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"blobfeed/bridge"
	"blobfeed/offsets"
)

type settled struct{}

func (settled) State() *offsets.State { return &offsets.State{} }

// The process is ready when every bridge has begun or failed, and one is ready; and not while it stops.
func TestFleetReady(t *testing.T) {
	f := NewFleetMonitor(Info{Instance: "a"})
	h := FleetHandler(f)
	probe := func(want int, says string) {
		t.Helper()
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/readyz", nil))
		if w.Code != want || !strings.Contains(w.Body.String(), says) {
			t.Errorf("%d: %s; want %d: %s", w.Code, w.Body, want, says)
		}
	}
	add := func(name string) *Monitor {
		m := NewMonitor(name, "feed", Info{}, time.Minute, nil)
		f.Show(m, NewLabelled(m))
		return m
	}
	begins := func(m *Monitor) {
		m.Watch(settled{})
		m.Leased(bridge.LeasesAssigned, nil)
	}
	probe(http.StatusOK, "ready")
	bad := add("bad")
	probe(http.StatusServiceUnavailable, "bad: starting: ")
	bad.Down(errors.New("broken"), time.Second)
	probe(http.StatusServiceUnavailable, "bad: the bridge has failed and starts again within 1s: broken")
	begins(add("good"))
	probe(http.StatusOK, "ready")
	slow := add("slow")
	probe(http.StatusServiceUnavailable, "slow: starting: ")
	slow.Failed(-1, errors.New("its topic cannot be read"))
	probe(http.StatusOK, "ready")
	begins(slow)
	begins(bad)
	if s := f.Snapshot(); !s.Ready || !s.Bridges[0].Ready {
		t.Errorf("what has failed is not ready after its next start: %+v", s)
	}
	bad.Down(errors.New("broken"), 0)
	f.Hide("good")
	f.Hide("slow")
	probe(http.StatusServiceUnavailable, "bad: the bridge has failed: broken")
	begins(bad)
	f.Drain()
	probe(http.StatusServiceUnavailable, "bad: draining: ")
	late := add("late")
	if begins(late); late.Snapshot().Ready {
		t.Error("a bridge that is added while the process stops is ready")
	}
	f.Hide("bad")
	f.Hide("late")
	probe(http.StatusServiceUnavailable, "draining: the process is stopping")
}

// A total never falls: what a bridge has delivered that was removed, or restarted with other settings, stays in it.
func TestFleetCountsWhatIsGone(t *testing.T) {
	f := NewFleetMonitor(Info{})
	add := func(name string, events int) {
		m := NewMonitor(name, "feed", Info{}, time.Minute, nil)
		f.Show(m, NewLabelled(m))
		m.Committed(bridge.Commit{Read: events})
	}
	add("one", 100)
	add("two", 20)
	f.Hide("one")
	f.Hide("one")
	add("one", 3)
	add("two", 4)
	if s := f.Snapshot(); s.Events != 127 || s.Bridges[0].Events != 3 || s.Bridges[1].Events != 4 {
		t.Errorf("%+v", s)
	}
}
