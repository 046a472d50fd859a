package pipeline

import (
	"errors"
	"runtime"
	"testing"
	"time"

	"blobfeed/internal/testing/feedsim"
	"blobfeed/source"
)

// live returns how many bytes of the heap are in use.
func live() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // behind the finalizers
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// settled waits until what a Lookahead may read is read: the next segment waits for memory.
func (a *Lookahead) settled(t *testing.T) {
	t.Helper()
	ahead := a.p.memory.ahead
	for began := time.Now(); time.Since(began) < time.Minute; runtime.Gosched() {
		ahead.mu.Lock()
		waits := len(ahead.waiting) > 0
		ahead.mu.Unlock()
		if waits && a.reading.Load() == 0 {
			return
		}
	}
	t.Fatal("the memory for what is read ahead is never full")
}

// What is read ahead, and a bundle of it, hold as much as the plan gives each of them, counted by what is live in the
// heap: with more, the collector of garbage takes the time (I9).
func TestBundleKeepsToThePlan(t *testing.T) {
	for name, spec := range map[string]feedsim.Spec{
		"an hour of 1,000 events": {Segments: 30, EventsPerSegment: 1000},
		"an hour of 100 events":   {Segments: 250, EventsPerSegment: 100},
		"large hours":             {Segments: 10, EventsPerSegment: 3500},
	} {
		t.Run(name, func(t *testing.T) {
			const plan = 8 << 20
			spec.Shards, spec.Seed = 3, 1
			p, d := over(t, plan, &lender{}, spec)
			p.set.BundleBytes, p.set.BundleReaders = plan/3, 100
			within := func(what string, got, plan int64) {
				t.Helper()
				if t.Logf("%s: %.1f MiB of %.1f", what, float64(got)/(1<<20), float64(plan)/(1<<20)); got > plan*115/100 {
					t.Errorf("%s holds %d bytes, and the plan says %d", what, got, plan)
				}
				if got < plan/3 {
					t.Errorf("%s holds %d bytes, and may hold %d: it is counted as more than it is", what, got, plan)
				}
			}
			before := live()
			a := p.Lookahead(t.Context(), source.Segment{})
			defer a.Stop()
			a.settled(t)
			within("the reading ahead", live()-before, plan/4*3)

			var bundle []*Small
			for {
				s := a.Peek(nil)
				if s == nil {
					t.Fatal("the feed ends before the bundle is full")
				}
				d.Manifest = s.Manifest
				err := p.EncodeWhole(t.Context(), d, s, len(bundle) == 0)
				if errors.Is(err, ErrFull) {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				a.Take()
				bundle = append(bundle, s)
			}
			a.settled(t)
			within("a bundle, with what is read ahead of it,", live()-before, plan/4*7)
			for _, s := range bundle {
				p.Drop(s)
			}
			if held, _, _ := p.Use(); held {
				t.Error("a bundle that was dropped holds memory")
			}
			runtime.KeepAlive(bundle)
		})
	}
}
