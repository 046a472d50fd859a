//go:build synctests

package simulation

import (
	"fmt"
	"os"
	"runtime"
	"testing"
	"testing/synctest"
	"time"
)

// hang is how long a run may take in real time.
const hang = 2 * time.Minute

// simulate runs a seed in a bubble.
func simulate(t *testing.T, seed uint64) (r Result) {
	t.Helper()
	watchdog := time.AfterFunc(hang, func() {
		stacks := make([]byte, 64<<20)
		stacks = stacks[:runtime.Stack(stacks, true)]
		fmt.Fprintf(os.Stderr, "SIM_SEED=%d hangs: virtual time does not move\n%s\n", seed, stacks)
		os.Exit(2)
	})
	defer watchdog.Stop()
	defer func() {
		if x := recover(); x != nil {
			fmt.Fprintf(os.Stderr, "SIM_SEED=%d panics, after %q\n", seed, r.Problems)
			panic(x)
		}
	}()
	synctest.Test(t, func(*testing.T) { r = Run(NewPlan(seed)) })
	return r
}
