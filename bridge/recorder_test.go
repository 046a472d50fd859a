package bridge

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// recorder is an Observer.
type recorder struct {
	t  *testing.T
	mu sync.Mutex
	Commit
	largest  Commit // by the events that it covers
	failed   []string
	headroom chan time.Duration // capacity 1
	changed  chan struct{}      // capacity 1: something was committed
	failing  chan struct{}      // the same: something failed
	done     chan struct{}      // the same: a segment is complete
}

func (r *recorder) Committed(c Commit) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Read += c.Read
	r.Emitted += c.Emitted
	r.Filtered += c.Filtered
	r.Late += c.Late
	r.Dead += c.Dead
	if c.Seen.After(r.Seen) {
		r.Seen = c.Seen
	}
	if c.Read > r.largest.Read {
		r.largest = c
	}
	poke(r.changed)
}

func (r *recorder) Completed(Completion) { poke(r.done) }

func (r *recorder) History(h History) {
	select {
	case r.headroom <- h.Headroom:
	default:
	}
}

func (r *recorder) Failed(lease int32, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = append(r.failed, err.Error())
	r.t.Logf("lease %d: %v", lease, err)
	poke(r.failing)
}

// await polls a condition on what is committed.
func (r *recorder) await(t *testing.T, cond func(c Commit) bool) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for {
		r.mu.Lock()
		c, failed := r.Commit, slices.Clone(r.failed)
		r.mu.Unlock()
		if cond(c) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("waited for long: %+v; went wrong: %q", c, failed)
		}
		time.Sleep(5 * time.Millisecond) // polling a count
	}
}

// awaitFailure returns when something has failed for a reason that has this text.
func (r *recorder) awaitFailure(t *testing.T, text string) {
	t.Helper()
	r.await(t, func(Commit) bool { return r.failures(text) > 0 })
}

func (r *recorder) failures(text string) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.failed {
		if strings.Contains(s, text) {
			n++
		}
	}
	return n
}
