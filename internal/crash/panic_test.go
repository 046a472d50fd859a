package crash

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// panicking is a bridge one of whose goroutines panics in the first run.
type panicking struct {
	fake
	waits func(hard context.Context) // for that goroutine
	err   error                      // of the first run, as Failed had it
}

func (b *panicking) Run(stop, hard context.Context) error {
	if b.runs.Load() > 0 {
		return b.fake.Run(stop, hard)
	}
	b.runs.Add(1)
	if b.waits == nil {
		panic("planted")
	}
	Go(hard, "view", func() { panic("planted") })
	b.waits(hard)
	return nil // as after a stop
}

func (b *panicking) Failed(err error, again time.Duration) { b.err = err; b.fake.Failed(err, again) }

// A panic is an error of its bridge, whatever Run returns then, and also if Run waits forever for what is gone.
func TestPanic(t *testing.T) {
	for name, waits := range map[string]func(context.Context){
		"alone":  nil,
		"ends":   func(hard context.Context) { <-hard.Done() },
		"hangs":  func(context.Context) { time.Sleep(time.Hour) },
		"panics": func(hard context.Context) { <-hard.Done(); panic("too") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := NewSupervisor(t.Context(), false)
				bad, good := &panicking{waits: waits}, &fake{}
				f.Start("bad", bad)
				f.Start("good", good)
				time.Sleep(2 * time.Hour)
				synctest.Wait()
				var p *Panic
				if !errors.As(bad.err, &p) || p.Value != "planted" || len(bad.pauses) != 1 || !bad.running.Load() {
					t.Errorf("%v, pauses %v", bad.err, bad.pauses)
				}
				if good.runs.Load() != 1 || !good.running.Load() {
					t.Error("the other notices")
				}
				f.Stop("bad", "good")
			})
		})
	}
}
