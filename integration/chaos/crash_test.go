//go:build integration

package chaos

import (
	"strings"
	"syscall"
	"testing"

	"blobfeed/internal/mutation"
)

// The program dies at every point between two steps, one after the other, on the same feed and topic: the next one goes on, and
// in the end everything is there once, in order, between the right markers.
func TestCrashPoints(t *testing.T) {
	s := newScene(t, "")
	for _, point := range mutation.Points() {
		for range 2 { // small finalized segments, for a bundle
			s.append(20)
			s.must(s.feed.Next(t.Context()))
		}
		s.append(20)
		settings := []string{"MUTATION_CRASH=" + point, "BRIDGE_SESSION_TIMEOUT=500ms"}
		if !strings.HasPrefix(point, "bundle.") {
			settings = append(settings, "BRIDGE_BUNDLE_BYTES=0")
		}
		i := s.start(0, settings...)
		s.leave(i)
		if strings.HasPrefix(point, "release.") || strings.HasPrefix(point, "leave.") {
			s.await("all events", s.delivered)
			s.must(i.Signal(syscall.SIGTERM))
		}
		s.await("the crash at "+point, func() bool {
			select {
			case <-i.done:
				return true
			default:
				s.append(2) // the feed goes on
				return false
			}
		})
		if status, ok := i.cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGKILL {
			t.Errorf("%s: it did not come there: %v\n%s", point, i.cmd.ProcessState, i.tail())
		}
	}
	s.start(0)
	s.append(20)
	s.end()
	if sum := s.judge.Summary(); !sum.OK() {
		t.Errorf("after a crash at each point:\n%s", sum)
	}
}
