package pipeline

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"blobfeed/internal/testing/feedsim"
	"blobfeed/source"
)

// distant is a store that answers late, and may be overloaded: then it rejects a request, which is repeated.
type distant struct {
	source.Store
	delay time.Duration
	busy  atomic.Bool

	mu        sync.Mutex
	now, most int // requests
}

func (d *distant) ReadAt(ctx context.Context, name string, p []byte, offset int64) (int, error) {
	d.mu.Lock()
	d.now++
	d.most = max(d.most, d.now)
	d.mu.Unlock()
	select {
	case <-time.After(d.delay):
	case <-ctx.Done():
	}
	d.mu.Lock()
	d.now--
	d.mu.Unlock()
	if d.busy.Load() {
		source.Busy(ctx)
	}
	return d.Store.ReadAt(ctx, name, p, offset)
}

// during returns the most requests at a time while n segments are taken.
func (d *distant) during(t *testing.T, a *Lookahead, n int) int {
	t.Helper()
	d.mu.Lock()
	d.most = d.now
	d.mu.Unlock()
	for range n {
		if a.Peek(nil) == nil {
			t.Fatal("the feed is over")
		}
		a.Take()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.most
}

// The farther the storage is, the more requests are made at a time. If it is overloaded, there are few.
func TestReadingAheadFollowsTheStorage(t *testing.T) {
	h := &lender{}
	p, _ := over(t, 0, h, feedsim.Spec{Seed: 1, Shards: 3, Segments: 800, EventsPerSegment: 3})
	synctest.Test(t, func(t *testing.T) {
		d := &distant{Store: h.store, delay: 30 * time.Millisecond}
		p.set.Feed = source.New(d, source.Options{})
		p.set.BundleReaders = 64
		a := p.Lookahead(t.Context(), source.Segment{})
		began := time.Now()
		if most := d.during(t, a, 200); most <= minRequests || most > maxRequests {
			t.Errorf("%d requests at a time", most)
		}
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("200 segments took %s, want 100 a second", took)
		}
		d.busy.Store(true)
		d.during(t, a, 100)
		if most := d.during(t, a, 20); most > maxRequests/8 {
			t.Errorf("%d requests at a time of an overloaded storage", most)
		}
		d.busy.Store(false)
		d.during(t, a, 150)
		if most := d.during(t, a, 30); most < 3 {
			t.Errorf("%d requests at a time, long after it was overloaded", most)
		}
		a.Stop()
		synctest.Wait()
	})
}
