package bridge

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

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
		opened:   &openedTopics{all: map[string]bool{}},
		encoders: &encoders{make: o.Encoder, of: map[string]*lazyEncoder{}},
		rivals:   &rivals{opts: &o, turn: newTurn()},
		pipe: pipeline.New(pipeline.Settings{
			Feed: o.Feed, Events: o.Events, Topics: o.Topics, Partition: o.Partition, DeadLetter: o.DeadLetter,
			SkipGaps: o.SkipGaps, Once: o.Once, MemoryBytes: o.BufferBytes, BundleBytes: o.BundleBytes,
			BundleReaders: o.BundleReaders, Timed: o.Tracer != nil, Log: o.Log,
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
