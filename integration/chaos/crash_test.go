//go:build integration

package chaos

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"blobfeed/internal/testing/mutation"
	"blobfeed/source"
)

// The program dies at every point between two steps, one after the other, on the same feed and topic: the next one
// goes on, and in the end everything is there once in each round of a seek, in order, between the right markers,
// but for what the gaps say.
func TestCrashPoints(t *testing.T) {
	s := newScene(t, "")
	for _, point := range mutation.Points() {
		for range 2 { // small finalized segments, for a bundle
			s.append(20)
			s.must(s.feed.Next(t.Context()))
		}
		s.append(20)
		step, _, _ := strings.Cut(point, ".")
		var dies *Instance
		switch step {
		case "intent": // the verb dies, while an instance runs
			i := s.startAt("")
			s.await("a seek that "+point+" ends", func() bool { // the instance may take lease 0 back before
				dies = s.seek(point)
				<-dies.done
				return dies.cmd.ProcessState.ExitCode() < 0
			})
			i.Kill()
		case "move", "fences":
			dies = s.startAt(point)
			s.await("a seek", func() bool { return s.seek("").Wait(stopLimit) == nil })
		case "gap":
			s.lose()
			dies = s.startAt(point)
		default:
			dies = s.startAt(point)
		}
		if step == "release" || step == "leave" {
			s.await("all events", s.delivered)
			s.must(dies.Signal(syscall.SIGTERM))
		}
		s.await("the crash at "+point, func() bool {
			if dies.Running() {
				s.append(2) // the feed goes on
			}
			return !dies.Running()
		})
		if status, ok := dies.cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGKILL {
			t.Errorf("%s: it did not come there: %v\n%s", point, dies.cmd.ProcessState, dies.tail())
		}
	}
	s.start(0)
	s.append(20)
	s.end()
	t.Log(s.judge.Moves())
	if sum := s.judge.Summary(); !sum.OK() {
		t.Errorf("after a crash at each point:\n%s", sum)
	}
	if m := s.judge.Moves(); m.Seeks == 0 || m.Gaps == 0 || m.Lost == 0 {
		t.Errorf("%s: want some of each", m)
	}
}

// startAt starts an instance that dies at a point, or at none. It may be gone soon.
func (s *scene) startAt(point string) *Instance {
	s.t.Helper()
	settings := []string{"MUTATION_CRASH=" + point, "BRIDGE_SESSION_TIMEOUT=500ms"}
	if !strings.HasPrefix(point, "bundle.") {
		settings = append(settings, tuning+",bundle_bytes=0")
	}
	i := s.start(0, settings...)
	s.leave(i)
	return i
}

// seek moves the bridge two segments back.
func (s *scene) seek(point string) *Instance {
	s.t.Helper()
	s.await("a marker", func() bool { return s.judge.Newest() != "" })
	i, err := s.Seek(source.SegmentAt(s.feed.Segment().Add(-2*time.Hour)).String(), "MUTATION_CRASH="+point)
	s.must(err)
	return i
}

// lose delivers a part of the open segment, and has retention remove all of it.
func (s *scene) lose() {
	s.t.Helper()
	i := s.startAt("")
	s.await("all events", s.delivered)
	i.Kill()
	s.append(20)
	s.must(s.feed.Next(s.t.Context()))
	s.Retain(0, s.judge.Remove)
	s.append(20)
}
