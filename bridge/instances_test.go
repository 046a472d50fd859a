package bridge

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"blobfeed/internal/testing/arrivals"
	"blobfeed/internal/testing/feedsim"
)

// Two instances share a feed that grows; one leaves in the middle. Each event comes once and in order.
func TestTwoInstances(t *testing.T) {
	t.Parallel()
	ctx, feed := t.Context(), t.TempDir()
	complete := arrivals.New()
	expect := func(e feedsim.Event) { complete.Expect(e.ID) }
	live, err := feedsim.New(feedsim.Dir(feed), feedsim.Spec{Shards: 8, EventsPerSegment: 400, BlockEvents: 5})
	if err != nil {
		t.Fatal(err)
	}
	grow := func() {
		t.Helper()
		if err := errors.Join(live.Append(ctx, 400, expect), live.Next(ctx)); err != nil {
			t.Fatal(err)
		}
	}
	if err := live.Open(ctx); err != nil {
		t.Fatal(err)
	}
	c := broker(t)
	committed := make(chan struct{}, 1) // by any of them
	var wg sync.WaitGroup
	defer wg.Wait()
	instance := func(name string) (*recorder, context.CancelFunc) {
		o, r := options(t, c, feed)
		o.Instance, o.Once, r.changed = name, false, committed
		stop, cancel := context.WithCancel(ctx)
		wg.Go(func() {
			if err := New(o).Run(stop, context.Background()); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
		return r, cancel
	}
	delivered := func(want int, rs ...*recorder) {
		t.Helper()
		limit := time.After(30 * time.Second)
		for {
			sum := 0
			for _, r := range rs {
				r.mu.Lock()
				sum += r.Emitted
				r.mu.Unlock()
			}
			if sum >= want {
				return
			}
			select {
			case <-committed:
			case <-limit:
				t.Fatalf("%d of %d events", sum, want)
			}
		}
	}
	grow()
	r1, stop1 := instance("one")
	defer stop1()
	delivered(400, r1)
	r2, stop2 := instance("two")
	defer stop2()
	grow()
	grow()
	delivered(1200, r1, r2)
	stop1() // hands over
	grow()
	delivered(1600, r1, r2)
	stop2()
	wg.Wait()
	if complete.Left() == 0 {
		t.Fatal("nothing was expected")
	}
	consume(t, c, append(promises(), complete)...)
}
