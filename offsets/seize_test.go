package offsets

import (
	"context"
	"errors"
	"fmt"
	"maps"
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
			f = &Frontier{Current: seg, Completed: segment(t, "2026/01/31/1100"), Resolved: "5.0000000000", Topics: map[string]int32{dataTopic: 2}}
		}
		c := &Cursor{Counts: Counts{Read: int64(10 + p)}}
		c.Advance(seg, int(p), source.ShardPosition{Offset: 100})
		if p == 1 {
			c.Pin(map[string]Pin{"late": {Partitions: 3, KeySchema: 9}})
		}
		if err := l.Commit(ctx, c, f); err != nil {
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
	for _, step := range []string{"fences", "frontier", "cursor 3", "cursor 1", "cursor 0", "never"} {
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

// Whatever moment a seek ends in, a start finds all of it or nothing: no lease has a position of before behind a frontier of
// after, and none has lost its position under the old frontier.
func TestSeekCrash(t *testing.T) {
	crashes(t, func(t *testing.T, ctx context.Context, cfg *Config, s *Seized, step string) {
		seg := segment(t, "2026/01/31/1200")
		to := segment(t, "2026/01/31/0900")
		err := s.Seek(ctx, func(f *Frontier) { f.Completed, f.Current = to, source.Segment{} })
		if step != "never" && step != "cursor 3" && !errors.Is(err, errCrash) || (step == "never" || step == "cursor 3") && err != nil { // lease 3 has nothing to void
			t.Fatal(err)
		}
		got := stored(t, ctx, cfg)
		if step == "fences" {
			if got.Frontier.Current != seg || got.Epoch != 0 || got.Cursor(0).At(seg, 0).Offset != 100 || got.Cursor(1).At(seg, 1).Offset != 100 {
				t.Errorf("something has changed: %+v", got)
			}
			return
		}
		f := got.Frontier
		if f.Completed != to || f.Current != (source.Segment{}) || f.Resolved != "5.0000000000" || f.Epoch != 1 {
			t.Errorf("frontier %+v", f)
		}
		if !maps.Equal(f.Topics, map[string]int32{dataTopic: 2, "late": 3}) || f.KeySchemas["late"] != 9 {
			t.Errorf("what cursors knew of topics is lost: %v, %v", f.Topics, f.KeySchemas)
		}
		for p := range int32(2) {
			c := got.Cursor(p)
			if c.At(seg, int(p)) != (source.ShardPosition{}) || c.Finished(seg) || c.Segment != (source.Segment{}) || c.Counts.Read != int64(10+p) || c.Epoch != 1 {
				t.Errorf("lease %d: %+v", p, c)
			}
		}
	})
}

// The same of a reset; and what is written to the next first start is not taken for void.
func TestResetCrash(t *testing.T) {
	crashes(t, func(t *testing.T, ctx context.Context, cfg *Config, s *Seized, step string) {
		seg := segment(t, "2026/01/31/1200")
		if err := s.Reset(ctx); step == "never" && err != nil || step != "never" && !errors.Is(err, errCrash) {
			t.Fatal(err)
		}
		got := stored(t, ctx, cfg)
		if step == "fences" {
			if got.Frontier == nil || got.Cursor(1).At(seg, 1).Offset != 100 {
				t.Errorf("something has changed: %+v", got)
			}
			return
		}
		if got.Frontier != nil {
			t.Errorf("frontier %+v", got.Frontier)
		}
		for p := range int32(2) {
			if c := got.Cursor(p); c.Segment != (source.Segment{}) {
				t.Errorf("lease %d: %+v", p, c)
			}
		}
		if step == "never" {
			for p := range 4 {
				if got.Cursors[p] != nil || got.Owners[p] != "" || got.Epoch != 0 {
					t.Errorf("lease %d: %+v, owner %q, epoch %d", p, got.Cursors[p], got.Owners[p], got.Epoch)
				}
			}
		}
		v := viewOf(t, cfg)
		l, err := Acquire(ctx, cfg, v, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close(ctx)
		state, _, _ := v.Get()
		c := state.Cursor(0)
		c.Advance(seg, 0, source.ShardPosition{Offset: 7})
		if err := l.Commit(ctx, c, &Frontier{Current: seg, Epoch: state.Epoch}); err != nil {
			t.Fatal(err)
		}
		if got := stored(t, ctx, cfg); got.Cursor(0).At(seg, 0).Offset != 7 || got.Cursor(1).Segment != (source.Segment{}) {
			t.Errorf("after the first start: %+v, %+v", got.Cursor(0), got.Cursor(1))
		}
	})
}

// An owner that did not notice can commit nothing, and a cursor of a later epoch keeps those waiting who do not know it yet.
func TestSeizeFences(t *testing.T) {
	cfg, ctx := cluster(t)
	standing(t, ctx, cfg)
	v := viewOf(t, cfg)
	zombie := acquire(t, ctx, cfg, v, "zombie")
	// A transaction is open: between two, kgo asks for a new epoch, which kfake gives to whoever asks.
	produce(t, ctx, zombie, "of the zombie")
	if err := zombie.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	before, _, _ := v.Get()
	s, err := Seize(ctx, cfg, 4)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(ctx)
	if err := s.Seek(ctx, func(f *Frontier) { f.Current = source.Segment{} }); err != nil {
		t.Fatal(err)
	}
	if err := zombie.Commit(ctx, before.Cursor(1), nil); !errors.Is(err, ErrFenced) {
		t.Errorf("the zombie's commit: %v", err)
	}
	after := stored(t, ctx, cfg)
	if c := after.Cursor(1); !c.Beyond(before.Frontier) || c.Beyond(after.Frontier) {
		t.Errorf("cursor %+v", c)
	}
	same := before.Cursor(1)
	if same.Beyond(before.Frontier) {
		t.Error("a cursor in the current segment is beyond its frontier")
	}
	same.Advance(segment(t, "2026/01/31/1300"), 1, source.ShardPosition{})
	if !same.Beyond(before.Frontier) {
		t.Error("a cursor in a later segment is not beyond the frontier")
	}
}
