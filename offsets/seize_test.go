package offsets

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/source"
)

var errCrash = errors.New("crash")

// standing writes a frontier in a segment, and cursors of leases 0 and 1 in it, lease 1 with a topic that is new.
func standing(t *testing.T, ctx context.Context, cfg *Config) source.Segment {
	t.Helper()
	seg := segment(t, "2026/01/31/1200")
	v := viewOf(t, cfg)
	for p := range int32(2) {
		l, err := Acquire(ctx, cfg, v, p)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close(ctx)
		var f *Frontier
		if p == 0 {
			f = &Frontier{
				Current:   seg,
				Completed: segment(t, "2026/01/31/1100"),
				Resolved:  "5.0000000000",
				Topics:    map[string]int32{dataTopic: 2},
			}
		}
		c := &Cursor{Counts: Counts{Read: int64(10 + p)}}
		c.Advance(seg, int(p), source.ShardPosition{Offset: 100})
		if p == 1 {
			c.Pin(map[string]Pin{"late": {Partitions: 3, KeySchema: 9}})
		}
		if err := openTx(l).Commit(ctx, c, f); err != nil {
			t.Fatal(err)
		}
	}
	return seg
}

// stored reads the topic as a start does.
func stored(t *testing.T, ctx context.Context, cfg *Config) *State {
	t.Helper()
	cl, err := kgo.NewClient(cfg.Client...)
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	ends, err := kadm.NewClient(cl).ListEndOffsets(ctx, cfg.Topic)
	if err != nil {
		t.Fatal(err)
	}
	at := make([]int64, 4)
	ends.Each(func(o kadm.ListedOffset) { at[o.Partition] = o.Offset })
	s, err := ReadTo(ctx, cfg.Topic, at, cfg.Client...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// crashes calls f with a Seized that ends at each of its steps, and at none.
func crashes(t *testing.T, f func(t *testing.T, ctx context.Context, cfg *Config, s *Seized, step string)) {
	for _, step := range []string{"fence", "intent", "never"} {
		t.Run(step, func(t *testing.T) {
			cfg, ctx := cluster(t)
			standing(t, ctx, cfg)
			s, err := Seize(ctx, cfg, 4)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close(ctx)
			s.after = func(at string) error {
				if at == step {
					return fmt.Errorf("%w after %s", errCrash, step)
				}
				return nil
			}
			f(t, ctx, cfg, s, step)
		})
	}
}

// A start finds all of a seek or nothing, whenever the seek ends: every position of before is void under the
// new frontier, and none is under the old one. The frontier moves until the other leases are fenced.
func TestSeekCrash(t *testing.T) {
	crashes(t, func(t *testing.T, ctx context.Context, cfg *Config, s *Seized, step string) {
		seg := segment(t, "2026/01/31/1200")
		to := segment(t, "2026/01/31/0900")
		err := s.Seek(ctx, func(f *Frontier) { f.Completed, f.Current = to, source.Segment{} })
		if step == "never" && err != nil || step != "never" && !errors.Is(err, errCrash) {
			t.Fatal(err)
		}
		got := stored(t, ctx, cfg)
		if step == "fence" {
			if got.Frontier.Current != seg || got.Epoch != 0 || got.Moving ||
				got.Cursor(0).At(seg, 0).Offset != 100 || got.Cursor(1).At(seg, 1).Offset != 100 {
				t.Errorf("something has changed: %+v", got)
			}
			return
		}
		f := got.Frontier
		if f.Completed != to || f.Current != (source.Segment{}) || f.Resolved != "5.0000000000" || f.Epoch != 1 ||
			!f.Moving ||
			!got.Moving {
			t.Errorf("frontier %+v", f)
		}
		if got.Cursor(1).Pins["late"] != (Pin{Partitions: 3, KeySchema: 9}) {
			t.Errorf("the pin of a cursor is lost: %v", got.Cursor(1).Pins)
		}
		for p := range int32(2) {
			c := got.Cursor(p)
			if c.At(seg, int(p)) != (source.ShardPosition{}) || c.Finished(seg) || c.Segment != (source.Segment{}) ||
				c.Counts.Read != int64(10+p) || c.Epoch != 1 {
				t.Errorf("lease %d: %+v", p, c)
			}
		}
	})
}

// The same of a reset. Cursors of before it do not count at all, also once there is a first frontier again; its own do.
func TestResetCrash(t *testing.T) {
	crashes(t, func(t *testing.T, ctx context.Context, cfg *Config, s *Seized, step string) {
		seg := segment(t, "2026/01/31/1200")
		if err := s.Reset(ctx); step == "never" && err != nil || step != "never" && !errors.Is(err, errCrash) {
			t.Fatal(err)
		}
		got := stored(t, ctx, cfg)
		if step == "fence" {
			if got.Frontier == nil || got.Cursor(1).At(seg, 1).Offset != 100 {
				t.Errorf("something has changed: %+v", got)
			}
			return
		}
		reset := func(got *State) {
			t.Helper()
			if got.Epoch != 1 || got.Cursors[1] != nil {
				t.Errorf("epoch %d, cursor of lease 1 %+v", got.Epoch, got.Cursors[1])
			}
		}
		reset(got)
		if got.Frontier != nil || !got.Moving {
			t.Errorf("frontier %+v, moving %t", got.Frontier, got.Moving)
		}
		v := viewOf(t, cfg)
		l, err := Acquire(ctx, cfg, v, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close(ctx)
		c := l.Cursor()
		c.Advance(seg, 0, source.ShardPosition{Offset: 7})
		if err := openTx(l).Commit(ctx, c, &Frontier{Current: seg, Epoch: l.State().Epoch, Born: l.State().Epoch}); err != nil {
			t.Fatal(err)
		}
		got = stored(t, ctx, cfg)
		reset(got)
		if got.Cursor(0).At(seg, 0).Offset != 7 || got.Moving {
			t.Errorf("after the first start: %+v, moving %t", got.Cursor(0), got.Moving)
		}
	})
}

// Without transactions nothing fences a verb: an instance that starts meanwhile takes lease 0 back. The verb says that
// nothing has changed, and the keeper repeats only what came after the segment that was complete.
func TestStaleMove(t *testing.T) {
	for name, move := range map[string]func(context.Context, *Seized) error{
		"reset": func(ctx context.Context, s *Seized) error { return s.Reset(ctx) },
		"seek":  func(ctx context.Context, s *Seized) error { return s.Seek(ctx, func(*Frontier) {}) },
	} {
		t.Run(name, func(t *testing.T) {
			cfg, ctx := cluster(t)
			cfg.Transactional = false
			seg := standing(t, ctx, cfg)
			s, err := Seize(ctx, cfg, 4)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close(ctx)
			keeper, err := Acquire(ctx, cfg, viewOf(t, cfg), 0)
			if err != nil {
				t.Fatal(err)
			}
			defer keeper.Close(ctx)
			if err := move(ctx, s); !errors.Is(err, ErrFenced) {
				t.Errorf("the move: %v", err)
			}
			got := stored(t, ctx, cfg)
			if got.Frontier == nil || got.Frontier.Current != seg || got.Epoch != 0 {
				t.Errorf("epoch %d, frontier %+v", got.Epoch, got.Frontier)
			}
			if after, regressed := got.Regressed(); !regressed || after != segment(t, "2026/01/31/1100") {
				t.Errorf("repeats after %q (%t)", after, regressed)
			}
		})
	}
}

// A running instance takes lease 0 back. The verb says that nothing has changed if its intent was not committed before,
// and only then: it may read the intent back when the owner record of the instance stands behind it.
func TestOvertakenMove(t *testing.T) {
	for name, after := range map[string]bool{"before the intent": false, "behind the intent": true} {
		t.Run(name, func(t *testing.T) {
			cfg, ctx := cluster(t)
			standing(t, ctx, cfg)
			s, err := Seize(ctx, cfg, 4)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close(ctx)
			if err := s.end(); err != nil { // it reads nothing
				t.Fatal(err)
			}
			s.end = func() error { return nil }
			v, moved := viewOf(t, cfg), make(chan error, 1)
			move := func() { moved <- s.Reset(ctx) }
			if after {
				go move()
				if _, err := v.Await(ctx, func(s *State) bool { return s.Epoch == 1 }); err != nil {
					t.Fatal(err)
				}
			}
			keeper, err := Acquire(ctx, cfg, v, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer keeper.Close(ctx)
			if !after {
				go move()
			}
			run(t, cfg, s.view)
			if err := <-moved; after && err != nil || !after && !errors.Is(err, ErrFenced) {
				t.Errorf("the move: %v", err)
			}
			if got := stored(t, ctx, cfg); (got.Epoch == 1) != after {
				t.Errorf("epoch %d", got.Epoch)
			}
		})
	}
}

// Two moves from one epoch: the instance that takes lease 0 back begins one, too, a repair or that of another verb. The
// first verb does not take it for its own.
func TestMoveOfAnother(t *testing.T) {
	for _, exact := range []bool{true, false} {
		cfg, ctx := cluster(t)
		cfg.Transactional = exact
		standing(t, ctx, cfg)
		s, err := Seize(ctx, cfg, 4)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close(ctx)
		keeper, err := Acquire(ctx, cfg, viewOf(t, cfg), 0)
		if err != nil {
			t.Fatal(err)
		}
		defer keeper.Close(ctx)
		moves := *keeper.State().Frontier
		moves.Epoch, moves.Moving = 1, true
		if err := keeper.Commit(ctx, nil, &moves); err != nil {
			t.Fatal(err)
		}
		if err := s.Reset(ctx); !errors.Is(err, ErrFenced) {
			t.Errorf("exactly once %t: the reset says %v, and the state %+v", exact, err, stored(t, ctx, cfg).Frontier)
		}
	}
}

// A fenced owner commits nothing of what it has open, and the view holds what it committed before.
func TestFence(t *testing.T) {
	cfg, ctx := cluster(t)
	standing(t, ctx, cfg)
	v := viewOf(t, cfg)
	zombie := acquire(t, ctx, cfg, v, "zombie")
	seg := segment(t, "2026/01/31/1200")
	c := zombie.Cursor()
	c.Advance(seg, 1, source.ShardPosition{Offset: 200})
	if err := openTx(zombie).Commit(ctx, c, nil); err != nil {
		t.Fatal(err)
	}
	// A transaction is open: between two, kgo asks for a new epoch, which kfake gives to every client.
	produce(t, ctx, zombie, "of the zombie")
	if err := openTx(zombie).Flush(ctx); err != nil {
		t.Fatal(err)
	}
	own := viewOf(t, cfg)
	fence, err := Fence(ctx, cfg, own, 1)
	if err != nil {
		t.Fatal(err)
	}
	fence.Close(ctx)
	if s, _, _ := own.Get(); s.Cursor(1).At(seg, 1).Offset != 200 {
		t.Errorf("the cursor of before the fence is not in the view: %+v", s.Cursor(1))
	}
	if s, _, _ := own.Get(); s.Owners[1] != "" {
		t.Errorf("the lease belongs to %q", s.Owners[1])
	}
	c.Advance(seg, 1, source.ShardPosition{Offset: 300})
	if err := openTx(zombie).Commit(ctx, c, nil); !errors.Is(err, ErrFenced) {
		t.Errorf("the zombie's commit: %v", err)
	}
}
