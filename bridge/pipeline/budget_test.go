package pipeline

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// hold takes memory that must be there at once.
func hold(t *testing.T, b *Budget, s *share, size int64) int64 {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	held, err := b.acquire(ctx, s, size)
	if err != nil {
		t.Errorf("%d bytes for one that holds %d are refused", size, s.held)
	}
	return held
}

// full reports that a share cannot have more now.
func full(b *Budget, s *share, size int64) bool {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	held, err := b.acquire(ctx, s, size)
	if err == nil {
		b.release(s, held)
	}
	return err != nil
}

// One that takes all that it can get leaves each of the others its part, and its next block of any size.
func TestBudgetParts(t *testing.T) {
	b := NewBudget(800)
	greedy := b.join()
	if hold(t, b, greedy, 800); !full(b, greedy, 1) {
		t.Error("alone, one may have all, and not more")
	}
	b.release(greedy, 800)
	quiet, other := b.join(), b.join()
	b.leave(other)
	for range 6 { // its part of 200, and the 400 for all
		hold(t, b, greedy, 100)
	}
	if !full(b, greedy, 1) {
		t.Error("one has taken the part of another")
	}
	if hold(t, b, quiet, 100); full(b, quiet, 100) || !full(b, quiet, 101) {
		t.Error("want a part of 200")
	}
	b.release(quiet, 100)
	if held := hold(t, b, quiet, 700); held != 200 {
		t.Errorf("a block that is too large counts as %d, want 200", held)
	}
	b.release(quiet, 200)
	b.release(greedy, 100)
	if hold(t, b, quiet, 300); !full(b, greedy, 1) {
		t.Error("what was given back is taken")
	}
	b.leave(greedy)
	if full(b, quiet, 500) {
		t.Error("what one has left is not free")
	}
	if b.release(greedy, 500); !full(b, quiet, 501) {
		t.Error("what one has left is free twice")
	}
	if b.release(quiet, 300); b.beyond != 0 || quiet.held != 0 || len(b.waiting) != 0 {
		t.Errorf("left: %+v, %+v", b, quiet)
	}
}

// A large block is not overtaken by small ones that come later, and one that is given up lets the next ones pass.
func TestBudgetOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBudget(800)
		first, second := b.join(), b.join()
		hold(t, b, first, 500)
		hold(t, b, second, 100)
		var got []string
		var mu sync.Mutex
		claim := func(ctx context.Context, name string, s *share, size int64) {
			go func() {
				if _, err := b.acquire(ctx, s, size); err == nil {
					mu.Lock()
					defer mu.Unlock()
					got = append(got, name)
				}
			}()
			synctest.Wait()
		}
		ctx, cancel := context.WithCancel(t.Context())
		claim(ctx, "given up", second, 500)
		claim(t.Context(), "small, of the same", second, 50)
		claim(t.Context(), "small, of another", first, 50)
		if len(got) != 0 {
			t.Errorf("overtaken by %q", got)
		}
		third := b.join()
		if claim(t.Context(), "has nothing", third, 250); len(got) != 1 {
			t.Error("one that holds nothing waits")
		}
		b.leave(third)
		cancel()
		synctest.Wait()
		if len(got) != 3 {
			t.Errorf("only %q got memory", got)
		}
	})
}

// Every pipeline makes progress, even if another one never gives its memory back.
func TestBudgetNeverStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBudget(1000)
		stuck := b.join()
		for b.takeNow(stuck, 10) {
		}
		var all sync.WaitGroup
		for seed := range uint64(5) {
			s := b.join()
			for shard := range uint64(3) {
				all.Go(func() {
					r := rand.New(rand.NewPCG(seed, shard))
					for range 300 {
						n, err := b.acquire(t.Context(), s, 1+r.Int64N(1000))
						if err != nil {
							t.Error(err)
							return
						}
						time.Sleep(time.Duration(r.IntN(1000)))
						b.release(s, n)
					}
				})
			}
		}
		all.Wait()
		if b.beyond != b.over(stuck.held) || len(b.waiting) > 0 {
			t.Errorf("left: %+v", b)
		}
	})
}

// takeNow takes memory without waiting.
func (b *Budget) takeNow(s *share, size int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, ok := b.take(s, size, true)
	return ok
}
