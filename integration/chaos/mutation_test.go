//go:build integration

package chaos

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/internal/testing/feedsim"
	"blobfeed/offsets"
)

// What is taken out is found, by the check named, in a scenario that the whole program survives: the same build with no
// mutation chosen.
func TestMutations(t *testing.T) {
	for _, c := range []struct {
		mutation string
		scenario func(*scene)
		found    []string // by one of these checks, whoever else finds it
	}{
		{"fence", (*scene).outcast, []string{"unique"}},
		{"read_first", (*scene).overtaken, []string{"unique"}},
		// The laggard writes its records below the marker, or it learns first that its segment is over, and skips them.
		{"barrier", (*scene).laggard, []string{"resolved", "ledger"}},
	} {
		for _, mutation := range []string{"", c.mutation} {
			t.Run(c.mutation+"/"+map[bool]string{true: "whole", false: "mutant"}[mutation == ""], func(t *testing.T) {
				s := newScene(t, mutation)
				c.scenario(s)
				var found []string
				for _, check := range s.judge.Summary().Checks {
					if len(check.Failures) > 0 {
						found = append(found, check.Name)
					}
				}
				if mutation == "" {
					if !s.judge.Summary().OK() {
						t.Errorf("the whole program fails:\n%s", s.judge.Summary())
					}
					return
				}
				t.Logf("found by %v", found)
				if !slices.ContainsFunc(c.found, func(check string) bool { return slices.Contains(found, check) }) {
					t.Errorf("%v do not find it:\n%s", c.found, s.judge.Summary())
				}
			})
		}
	}
}

// No switch is left in the program that people run.
func TestNoMutations(t *testing.T) {
	for path, want := range map[string]bool{program: false, mutable: true} {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(b, []byte("MUTATION_GATE")) != want {
			t.Errorf("%s has switches: %v, want %v", path, !want, want)
		}
	}
}

// scene is a small world, and who watches it.
type scene struct {
	*World
	t      *testing.T
	mutant bool
	judge  *Judge
	admin  *kadm.Client
}

func newScene(t *testing.T, mutation string) *scene {
	t.Helper()
	name := fmt.Sprintf("mutation-%d", time.Now().UnixNano())
	spec := feedsim.Spec{Shards: 2, Blobs: 50, BlockEvents: 5}
	w, err := NewWorld(t.Context(), shared, mutable, t.ArtifactDir(), name, spec, "MUTATION="+mutation,
		"BRIDGE_EVENTS=all", "BRIDGE_LOG_LEVEL=debug") // its feed has events of all types, and no account
	if err != nil {
		t.Fatal(err)
	}
	s := &scene{World: w, t: t, mutant: mutation != ""}
	if s.judge, err = NewJudge(shared.KafkaBrokers, w.Topic); err != nil {
		t.Fatal(err)
	}
	s.admin = kadm.NewClient(s.judge.cl)
	ctx, cancel := context.WithCancel(context.Background())
	read := make(chan error)
	go func() { read <- s.judge.Read(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-read; err != nil {
			t.Error(err)
		}
		s.judge.Close()
		if err := w.Close(); err != nil {
			t.Error(err)
		}
		for _, i := range w.all {
			if t.Failed() {
				t.Logf("%s:\n%s", i.Name, i.tail())
			}
		}
	})
	s.must(w.feed.Open(t.Context()))
	return s
}

func (s *scene) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *scene) start(slot int, env ...string) *Instance {
	s.t.Helper()
	i, err := s.Start(slot, env...)
	s.must(err)
	return i
}

func (s *scene) append(n int) {
	s.t.Helper()
	s.must(s.feed.Append(s.t.Context(), n, s.judge.Expect))
}

func (s *scene) await(what string, cond func() bool) {
	s.t.Helper()
	s.must(Await(s.t.Context(), time.Minute, what, func(context.Context) (bool, error) { return cond(), nil }))
}

func (s *scene) delivered() bool { return s.judge.Left() == 0 }

// state reads the offsets topic, which has nothing to say before it exists.
func (s *scene) state() *offsets.State {
	s.t.Helper()
	topic := s.Topic[:len(s.Topic)-len(".changes")] + ".offsets"
	listed, err := s.admin.ListEndOffsets(s.t.Context(), topic)
	s.must(err)
	err = listed.Error()
	if errors.Is(err, kerr.UnknownTopicOrPartition) {
		return &offsets.State{}
	}
	s.must(err)
	var ends []int64
	for p := range int32(len(listed[topic])) {
		ends = append(ends, listed[topic][p].Offset)
	}
	state, err := offsets.ReadTo(s.t.Context(), topic, ends, kgo.SeedBrokers(shared.KafkaBrokers...),
		kgo.FetchMaxWait(200*time.Millisecond))
	s.must(err)
	return state
}

// end finalizes the feed and reads everything. A mutant need not get there.
func (s *scene) end() {
	s.t.Helper()
	s.must(s.feed.Finalize(s.t.Context()))
	if s.mutant {
		return
	}
	s.await("all events and the last marker", func() bool { return s.delivered() && s.judge.Newest() == s.promise() })
	for _, i := range s.running() {
		s.leave(i)
		s.must(i.Signal(syscall.SIGTERM))
		s.must(i.Wait(stopLimit))
	}
	s.must(Await(s.t.Context(), settleLimit, "read to the end", s.judge.Drained))
	for _, f := range s.Deserters() {
		s.t.Error(f)
	}
}

// lone is of scenes with one lease. The client takes 10 s to see that nobody answers its heartbeats: in that time, and
// not in the session before it, a scene has to happen.
var lone = []string{"BRIDGE_OFFSETS_LEASES=1", "BRIDGE_SESSION_TIMEOUT=1s"}

// outcast: the group can't hear an instance, gives its lease to another one, and the first goes on: it hears neither
// the group nor what the other one writes, and its producers' connections live. Only the fence is between it and the
// topic.
func (s *scene) outcast() {
	first := s.start(0, lone...)
	s.append(20)
	s.await("the first events", s.delivered)
	second := s.start(1, lone...)
	s.Cut(first.slot, -1, Blind)
	s.await("a second owner", func() bool { return s.state().Owners[0] == second.Name })
	s.await("an event twice, or the first one's end", func() bool {
		s.append(5)
		return s.judge.Doubled() || !s.mutant && s.released(first)
	})
	s.Cut(first.slot, -1, Open)
	s.append(20)
	s.end()
}

// released reports whether an instance says that it lost its leases.
func (s *scene) released(i *Instance) bool {
	text, err := os.ReadFile(i.log)
	s.must(err)
	return bytes.Contains(text, []byte(`"lost":true`))
}

// overtaken: between what a new owner does first and the fence, the former owner commits. Who has read the cursor
// before does not know of that.
func (s *scene) overtaken() {
	gate := filepath.Join(s.dir, "gate")
	first := s.start(0, lone...)
	s.append(20)
	s.await("the first events", s.delivered)
	s.start(1, append([]string{"MUTATION_GATE=" + gate}, lone...)...)
	s.Cut(first.slot, -1, NoGroup)
	s.await("an acquisition that has begun", func() bool {
		_, err := os.Stat(gate + ".0")
		return err == nil
	})
	s.append(20)
	s.await("events of the former owner", s.delivered)
	s.must(os.WriteFile(gate, nil, 0o600))
	s.Cut(first.slot, -1, Open)
	s.append(20)
	s.await("the second owner's events", s.delivered)
	s.end()
}

// laggard: one of two instances stands still, within its session, with events of a segment that is final. The other one
// is done, and has lease 0: it may neither resolve the segment nor go on.
func (s *scene) laggard() {
	env := []string{"BRIDGE_OFFSETS_LEASES=2", "BRIDGE_SESSION_TIMEOUT=45s", "BRIDGE_TXN_TIMEOUT=60s"}
	s.start(0, env...)
	s.start(1, env...)
	s.append(100)
	owners := func() (own [2]string) {
		copy(own[:], s.state().Owners)
		return own
	}
	s.await("an owner of each lease", func() bool {
		o := owners()
		return s.delivered() && o[0] != "" && o[1] != "" && o[0] != o[1]
	})
	var lagging *Instance
	for _, i := range s.running() {
		if i.Name == owners()[1] {
			lagging = i
		}
	}
	s.must(lagging.Signal(syscall.SIGSTOP))
	s.append(100)
	segment := s.feed.Segment()
	s.must(s.feed.Next(s.t.Context()))
	s.await("the end of the other one's work on the segment", func() bool {
		if s.mutant { // it goes on in the transaction of the marker
			return s.judge.Markers() > 0
		}
		c := s.state().Cursors[0]
		return c != nil && c.Done && c.Segment.Time().Equal(segment)
	})
	s.must(lagging.Signal(syscall.SIGCONT))
	s.append(20)
	s.end()
	if s.mutant {
		s.await("records below the marker, or events lost", func() bool {
			for _, c := range s.judge.Summary().Checks {
				if c.Name == "resolved" && len(c.Failures) > 0 {
					return true
				}
			}
			return s.judge.Markers() == s.feed.Summary().Finalized
		})
	}
}
