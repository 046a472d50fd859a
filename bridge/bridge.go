package bridge

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"blobfeed/bridge/pipeline"
	"blobfeed/offsets"
)

// Bridge is one instance: a member of the group, with a worker for each lease that the group gives it.
type Bridge struct {
	opts   *Options                     // immutable
	shared *shared                      // complete before Run joins the group, immutable from then on
	view   atomic.Pointer[offsets.View] // shared.view, for State

	// Set by Run before it starts anything.
	hard   context.Context // ends transactions where they are
	fatal  func(error)     // stops the instance with an error
	finish func()          // stops the instance: its work is done

	mu       sync.Mutex // guards what follows
	workers  map[int32]*worker
	joined   bool
	refusals int // by the group, in a row
}

// New returns a bridge that does nothing yet.
func New(o Options) *Bridge {
	if o.Now == nil {
		o.Now = time.Now
	}
	sh := &shared{
		opts: &o, cfg: o.lease(), history: newHistory(o.Feed, o.PollInterval),
		encoders: &encoders{make: o.Encoder, of: map[string]*lazyEncoder{}},
		rivals:   &rivals{opts: &o, turn: newTurn()},
		pipe: pipeline.New(pipeline.Settings{
			Feed: o.Feed, Events: o.Events, Topics: o.Topics, Partition: o.Partition, DeadLetter: o.DeadLetter,
			SkipGaps: o.SkipGaps, Once: o.Once, MemoryBytes: o.BufferBytes, BundleBytes: o.BundleBytes,
			BundleReaders: o.BundleReaders, Log: o.Log,
		}),
		poke: make(chan struct{}, 1),
	}
	return &Bridge{opts: &o, shared: sh, workers: map[int32]*worker{}}
}

// State is what all instances know of each other; nil until the brokers have answered. It is for observers.
func (b *Bridge) State() *offsets.State {
	view := b.view.Load()
	if view == nil {
		return nil
	}
	s, _, _ := view.Get() // a failed view stops the instance, which reports it
	return s
}

var _ offsets.Holder = (*Bridge)(nil)

// Assigned starts a worker for each lease. There may be none: more instances than leases.
func (b *Bridge) Assigned(leases []int32) {
	b.opts.Observer.Leased(LeasesAssigned, leases)
	b.mu.Lock()
	defer b.mu.Unlock()
	if n := len(leases); n > 0 && int(slices.Max(leases)) >= b.shared.leases {
		b.fatal(b.shared.leasesChanged(b.shared.leases, int(slices.Max(leases))+1))
		return
	}
	for _, p := range leases {
		b.workers[p] = startWorker(b.shared, p, b.hard, b.fatal)
	}
	b.joined = true
	poke(b.shared.poke)
	if len(leases) > 0 { // every rebalance of the group asks, and most bring nothing
		b.opts.Log.Info("leases assigned", "leases", leases)
	}
}

// Revoked stops the workers of the leases, side by side, and returns when they have ended. A lost lease belongs to
// somebody else already: what its worker has open will be refused, so there is nothing to wait for.
func (b *Bridge) Revoked(leases []int32, lost bool) {
	b.mu.Lock()
	var ws []*worker
	for _, p := range leases {
		if w := b.workers[p]; w != nil {
			ws = append(ws, w)
			delete(b.workers, p)
		}
	}
	if lost {
		b.joined = false // until the group has agreed again: what is not ours may be nobody's
	}
	b.mu.Unlock()
	for _, w := range ws {
		w.stop(lost)
	}
	for _, w := range ws {
		<-w.ended
	}
	if change := LeasesReleased; len(leases) > 0 || lost {
		if lost {
			change = LeasesLost
		}
		b.opts.Observer.Leased(change, leases)
	}
	if len(ws) > 0 {
		b.opts.Log.Info("leases released", "leases", leases, "lost", lost)
	}
}

// Refused reports what keeps us out of the group. With Once it ends the run like all other failures: nobody looks after
// it.
func (b *Bridge) Refused(err error) {
	if errors.Is(err, kerr.InvalidSessionTimeout) {
		b.fatal(&SettingsError{Problem: fmt.Sprintf("the brokers do not take BRIDGE_SESSION_TIMEOUT=%s: want one from "+
			"their group.min.session.timeout.ms (6 s by default) to their group.max.session.timeout.ms (30 min)",
			b.opts.Session)})
		return
	}
	b.opts.Observer.Failed(-1, err)
	b.mu.Lock()
	if b.joined {
		b.refusals = 0
	}
	b.refusals++
	enough := b.opts.Once && b.refusals >= onceAttempts
	b.mu.Unlock()
	if enough {
		b.fatal(&givenUpError{err})
	}
}

// leasesHeld returns the leases that have a worker.
func (b *Bridge) leasesHeld() []int32 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Collect(maps.Keys(b.workers))
}

func (b *Bridge) keepsFrontier() bool { return slices.Contains(b.leasesHeld(), 0) }
