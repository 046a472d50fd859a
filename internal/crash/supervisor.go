package crash

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"blobfeed/internal/pause"
)

// Bridge is one of a fleet.
type Bridge interface {
	// Run works until stop ends, and returns nil then, or when there is nothing more to do. At the end of hard it
	// leaves everything as it is.
	Run(stop, hard context.Context) error
	// Failed hears of the error that Run has ended with, and when Run is called again; 0 is never.
	Failed(err error, again time.Duration)
}

// Supervisor runs many bridges in one process, each failing alone. One that ends with an error starts again after a
// pause, which doubles from a second to a minute; the others do not notice. One that ends without an error has done
// its work, and stays ended. A panic in a goroutine of a bridge is an error of this bridge. Bridges can be added,
// replaced and removed by name while the others work. The methods may be called from several goroutines, but for one
// name from one at a time.
type Supervisor struct {
	hard context.Context
	once bool

	mu      sync.Mutex
	stops   bool // Wait stops all
	members map[string]*member
	changed chan struct{} // capacity 1: a bridge has ended, or was removed
}

type member struct {
	cancel context.CancelFunc
	ended  chan struct{} // closed at the end
	err    error         // the last one; read it after ended
}

// NewSupervisor returns a supervisor of no bridges. When hard ends, every bridge ends at once. With once, a bridge
// that has failed does not start again.
func NewSupervisor(hard context.Context, once bool) *Supervisor {
	return &Supervisor{hard: hard, once: once, members: map[string]*member{}, changed: make(chan struct{}, 1)}
}

// Start starts a bridge, unless all are being stopped. No other of its name may be running.
func (f *Supervisor) Start(name string, b Bridge) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stops {
		return
	}
	stop, cancel := context.WithCancel(f.hard)
	m := &member{cancel: cancel, ended: make(chan struct{})}
	f.members[name] = m
	go func() {
		defer f.poke()
		defer close(m.ended)
		defer cancel()
		m.err = f.keep(stop, b)
	}()
}

// Stop stops bridges side by side, and returns when they have ended.
func (f *Supervisor) Stop(names ...string) {
	var stopped []*member
	f.mu.Lock()
	for _, name := range names {
		if m := f.members[name]; m != nil {
			stopped = append(stopped, m)
			m.cancel()
		}
		delete(f.members, name)
	}
	f.mu.Unlock()
	for _, m := range stopped {
		<-m.ended
	}
	f.poke()
}

// Wait returns when stop has ended and every bridge with it, or when all bridges have ended by themselves. A fleet
// without bridges waits for some. The error has what the bridges failed with last, if they do not start again.
func (f *Supervisor) Wait(stop context.Context) error {
	for {
		select {
		case <-stop.Done():
			f.mu.Lock()
			f.stops = true
			names := slices.Collect(maps.Keys(f.members))
			f.mu.Unlock()
			f.Stop(names...)
			return nil
		case <-f.changed:
			if ended, err := f.over(); ended {
				return err
			}
		}
	}
}

// over reports whether there are bridges, and all have ended.
func (f *Supervisor) over() (ended bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var failed []error
	for _, name := range slices.Sorted(maps.Keys(f.members)) {
		m := f.members[name]
		select {
		case <-m.ended:
		default:
			return false, nil
		}
		if m.err != nil {
			failed = append(failed, fmt.Errorf("bridge %s: %w", name, m.err))
		}
	}
	return len(f.members) > 0, errors.Join(failed...)
}

func (f *Supervisor) poke() {
	select {
	case f.changed <- struct{}{}:
	default:
	}
}

// keep runs b again and again until it ends without an error, or stop ends.
func (f *Supervisor) keep(stop context.Context, b Bridge) error {
	for n := 0; ; n++ {
		began := time.Now()
		err := f.run(stop, b)
		if err == nil {
			return nil
		}
		if f.once || stop.Err() != nil {
			b.Failed(err, 0)
			return err
		}
		if time.Since(began) > healthy {
			n = 0
		}
		again := min(firstPause<<min(n, 10), maxPause)
		b.Failed(err, again)
		if pause.For(stop, again) != nil {
			return err
		}
	}
}

// run runs b once. A panic of one of its goroutines ends it, and is its error.
func (f *Supervisor) run(stop context.Context, b Bridge) error {
	hard, abort := context.WithCancel(f.hard)
	defer abort()
	stop, cancel := context.WithCancel(stop)
	defer cancel()
	caught := make(chan *Panic, 1) // the first: others may follow from it
	handle := func(p *Panic) {
		select {
		case caught <- p:
		default:
		}
		abort()
		cancel()
	}
	hard, stop = With(hard, handle), With(stop, handle)
	ended, err := make(chan struct{}), error(nil)
	go func() {
		defer close(ended)
		err = Try(hard, "bridge", func() error { return b.Run(stop, hard) })()
	}()
	select {
	case <-ended:
		select {
		case p := <-caught:
			return p
		default:
			return err
		}
	case p := <-caught:
		t := time.NewTimer(unwinding)
		defer t.Stop()
		select {
		case <-ended:
		case <-t.C: // the next run fences what is left of this one
		}
		return p
	}
}

const (
	firstPause = time.Second
	maxPause   = time.Minute
	// healthy is how long a bridge has run if the next error is a new one.
	healthy = 5 * time.Minute
	// unwinding is how long a bridge may take to end after a panic. What waits for a goroutine that is gone, or for a
	// lock that it held, may wait forever.
	unwinding = 30 * time.Second
)
