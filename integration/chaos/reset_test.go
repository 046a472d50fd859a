//go:build integration

package chaos

import (
	"errors"
	"maps"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/internal/testing/feedsim"
	"blobfeed/internal/testing/mutation"
	"blobfeed/source"
)

// A reset dies at every point, in the process of the verb and in that of the instance that ends the move, while
// another instance is paused that wakes up late: the bridge continues where it was, or starts from scratch. In the
// end each partition holds the whole feed behind its last start, each event once and in order.
func TestResetCrashPoints(t *testing.T) {
	s := newScene(t, "")
	events := map[string]bool{}
	grow := func(n int) {
		s.must(s.feed.Append(t.Context(), n, func(e feedsim.Event) {
			events[e.Position()] = true
			s.judge.Expect(e)
		}))
	}
	for _, point := range mutation.Points() {
		step, _, _ := strings.Cut(point, ".")
		if step != "intent" && step != "move" && step != "fences" {
			continue
		}
		grow(10)
		s.must(s.feed.Next(t.Context()))
		grow(10)
		paused := s.startAt("")
		s.await("all events", s.delivered)
		s.must(paused.Signal(syscall.SIGSTOP))
		if step == "intent" {
			s.await("a reset that dies at "+point, func() bool {
				i := s.reset(point)
				<-i.done
				return i.cmd.ProcessState.ExitCode() < 0
			})
		} else {
			s.await("a reset", func() bool { return s.reset("").Wait(stopLimit) == nil })
			dies := s.startAt(point)
			s.await("the crash at "+point, func() bool { return !dies.Running() })
			if status, ok := dies.cmd.ProcessState.Sys().(syscall.WaitStatus); !ok ||
				status.Signal() != syscall.SIGKILL {
				t.Errorf("%s: it did not come there: %v\n%s", point, dies.cmd.ProcessState, dies.tail())
			}
		}
		s.must(paused.Signal(syscall.SIGCONT))
		grow(2)
		s.await("the events of after the reset", s.delivered)
		paused.Kill()
	}
	s.start(0)
	grow(20)
	s.end()
	for p, life := range s.lives() {
		for at := range life {
			delete(events, at)
		}
		t.Logf("partition %d: %d events in its last life", p, len(life))
	}
	if len(events) > 0 {
		t.Errorf("%d events are missing behind the last start", len(events))
	}
}

func (s *scene) reset(point string) *Instance {
	s.t.Helper()
	i, err := s.Reset("MUTATION_CRASH=" + point)
	s.must(err)
	return i
}

// lives returns, by partition, the events behind the last start from scratch. In each life before it, too, no event
// may be there twice, and those of a key have to be in order.
func (s *scene) lives() map[int32]map[string]bool {
	s.t.Helper()
	ends, err := s.admin.ListEndOffsets(s.t.Context(), s.Topic)
	s.must(err)
	from := map[int32]kgo.Offset{}
	for _, end := range ends[s.Topic] {
		from[end.Partition] = kgo.NewOffset().AtStart()
	}
	cl, err := kgo.NewClient(kgo.SeedBrokers(s.stack.KafkaBrokers[0]), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{s.Topic: from}), kgo.KeepControlRecords(),
		kgo.FetchMaxWait(200*time.Millisecond))
	s.must(err)
	defer cl.Close()
	lives := map[int32]map[string]bool{}
	last := map[int32]source.Segment{}
	keys := map[string]source.Position{}
	s.await("the end of the topic", func() bool {
		fs := cl.PollFetches(s.t.Context())
		s.must(fs.Err())
		fs.EachRecord(func(r *kgo.Record) {
			if end, ok := ends.Lookup(s.Topic, r.Partition); ok && r.Offset+1 >= end.Offset {
				delete(from, r.Partition)
			}
			text, at, err := position(r)
			if r.Attrs.IsControl() || r.Key == nil {
				return
			}
			s.must(err)
			life := lives[r.Partition]
			// a position twice: others are missing
			if life == nil || life[text] || at.Segment.Compare(last[r.Partition]) < 0 {
				life = map[string]bool{}
				lives[r.Partition] = life
				maps.DeleteFunc(keys, func(key string, _ source.Position) bool { return key[0] == byte(r.Partition) })
			}
			key := string([]byte{byte(r.Partition)}) + string(r.Key)
			if before, ok := keys[key]; ok && at.Compare(before) <= 0 {
				s.t.Errorf("partition %d, offset %d: %s comes behind %s of the same key", r.Partition, r.Offset, at,
					before)
			}
			keys[key], last[r.Partition], life[text] = at, at.Segment, true
		})
		return len(from) == 0
	})
	return lives
}

// position returns where a record's event is in the feed. An id can be there twice.
func position(r *kgo.Record) (text string, at source.Position, err error) {
	for _, h := range r.Headers {
		if h.Key == "position" {
			at, err = source.ParsePosition(string(h.Value))
			return string(h.Value), at, err
		}
	}
	return "", at, errors.New("no header position")
}
