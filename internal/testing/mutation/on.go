//go:build mutation

package mutation

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
	"time"
)

// The switches.
var (
	NoFence   = chosen == "fence"
	ReadFirst = chosen == "read_first"
	NoBarrier = chosen == "barrier"
	Split     = chosen == "split"
	Early     = chosen == "early"
	Believe   = chosen == "believe"
	NoHold    = chosen == "hold"
)

var chosen, gate, crash = os.Getenv("MUTATION"), os.Getenv("MUTATION_GATE"), os.Getenv("MUTATION_CRASH")

// A misspelt mutation would take nothing out, and so prove nothing.
func init() {
	if chosen != "" && !NoFence && !ReadFirst && !NoBarrier && !Split && !Early && !Believe && !NoHold {
		panic("MUTATION=" + chosen + ": want fence, read_first, barrier, split, early, believe or hold")
	}
}

// Crash ends the process, if the point of the step is the one that MUTATION_CRASH names as step.point.
func Crash(step, point string) {
	if crash == step+"."+point {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // it takes a moment
	}
}

// Panic panics, in the first goroutine of the kind that MUTATION_PANIC names.
func Panic(kind string) {
	if kind != "" && kind == panics && panicked.CompareAndSwap(false, true) {
		panic("planted in " + kind)
	}
}

var (
	panics   = os.Getenv("MUTATION_PANIC")
	panicked atomic.Bool
)

// Gate waits until the file exists that MUTATION_GATE names.
func Gate(ctx context.Context, lease int32) error {
	if gate == "" {
		return nil
	}
	if err := os.WriteFile(fmt.Sprintf("%s.%d", gate, lease), nil, 0o600); err != nil {
		return err
	}
	for {
		if _, err := os.Stat(gate); err == nil {
			return nil
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
