package crash

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// fake is a bridge that fails a number of times, and then works until it is stopped, or is done.
type fake struct {
	failures int
	works    time.Duration // before each failure, and before the end
	done     bool
	lingers  time.Duration // after a stop

	runs    atomic.Int32
	running atomic.Bool
	pauses  []time.Duration // before it was called again; read it when it has ended
}

var errBroken = errors.New("broken")

func (b *fake) Run(stop, hard context.Context) error {
	b.running.Store(true)
	defer b.running.Store(false)
	n := int(b.runs.Add(1))
	if n <= b.failures {
		time.Sleep(b.works)
		return errBroken
	}
	if b.done {
		time.Sleep(b.works)
		return nil
	}
	<-stop.Done()
	select {
	case <-time.After(b.lingers):
	case <-hard.Done():
	}
	return nil
}

func (b *fake) Failed(_ error, again time.Duration) { b.pauses = append(b.pauses, again) }

// A bridge that fails starts again, later each time, and the others do not notice. A stop ends all side by side.
func TestFailingAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := NewSupervisor(t.Context(), false)
		good, bad := &fake{lingers: 5 * time.Second}, &fake{failures: 1000}
		also := &fake{lingers: 5 * time.Second}
		f.Start("good", good)
		f.Start("bad", bad)
		f.Start("also", also)
		stop, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- f.Wait(stop) }()
		time.Sleep(5 * time.Minute)
		if good.runs.Load() != 1 || !good.running.Load() {
			t.Errorf("the good one ran %d times", good.runs.Load())
		}
		began := time.Now()
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took != 5*time.Second || good.running.Load() || also.running.Load() {
			t.Errorf("the stop took %s", took)
		}
		if want := []time.Duration{1, 2, 4, 8, 16, 32, 60, 60}; len(bad.pauses) < len(want) {
			t.Errorf("pauses %v", bad.pauses)
		} else {
			for i := range want {
				if bad.pauses[i] != want[i]*time.Second {
					t.Errorf("pause %d of %s, want %ds", i, bad.pauses[i], want[i])
				}
			}
		}
	})
}

// After a long time of work, a failure is a new one.
func TestPauseAfterWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := NewSupervisor(t.Context(), false)
		b := &fake{failures: 4, works: healthy + 1, done: true}
		f.Start("b", b)
		if err := f.Wait(t.Context()); err != nil {
			t.Error(err)
		}
		if slices.Max(b.pauses) != firstPause || len(b.pauses) != 4 {
			t.Errorf("pauses %v", b.pauses)
		}
	})
}

// When all have ended, the fleet has. With once, what failed is its error.
func TestEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := NewSupervisor(t.Context(), true)
		f.Start("done", &fake{done: true, works: time.Minute})
		bad := &fake{failures: 1}
		f.Start("bad", bad)
		if err := f.Wait(t.Context()); !errors.Is(err, errBroken) || err.Error() != "bridge bad: broken" {
			t.Error(err)
		}
		if bad.runs.Load() != 1 || !slices.Equal(bad.pauses, []time.Duration{0}) {
			t.Errorf("%d runs", bad.runs.Load())
		}
	})
}

// A bridge can be taken out, also while it waits for its next start, and another one put in.
func TestReplace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := NewSupervisor(t.Context(), false)
		first, second, failing := &fake{}, &fake{}, &fake{failures: 1000}
		f.Start("b", first)
		f.Start("failing", failing)
		time.Sleep(10 * time.Second)
		began := time.Now()
		f.Stop("b", "failing", "unknown")
		if first.running.Load() || time.Since(began) > 0 {
			t.Error("a bridge outlives its stop, or the stop waits for a pause")
		}
		runs := failing.runs.Load()
		f.Start("b", second)
		time.Sleep(time.Hour)
		if !second.running.Load() || failing.runs.Load() != runs {
			t.Error("what is in is not what was put in")
		}
		f.Stop("b")
	})
}

// A fleet without bridges waits for the first one; a hard stop does not wait for bridges that linger.
func TestEmptyAndHard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hard, abort := context.WithCancel(t.Context())
		defer abort()
		f := NewSupervisor(hard, false)
		ended := make(chan error, 1)
		stop, cancel := context.WithCancel(t.Context())
		go func() { ended <- f.Wait(stop) }()
		f.Start("gone", &fake{})
		f.Stop("gone")
		synctest.Wait()
		if len(ended) > 0 {
			t.Fatal("a fleet without bridges has ended")
		}
		f.Start("b", &fake{lingers: time.Hour})
		synctest.Wait()
		began := time.Now()
		cancel()
		synctest.Wait()
		abort()
		if err := <-ended; err != nil || time.Since(began) > 0 {
			t.Errorf("%v after %s", err, time.Since(began))
		}
		late := &fake{}
		f.Start("late", late)
		synctest.Wait()
		if late.runs.Load() > 0 {
			t.Error("a bridge starts while all stop")
		}
	})
}
