//go:build synctests

package simulation

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// hang is how long a run may take in real time.
const hang = 2 * time.Minute

// simulate carries a plan out, in a bubble.
func simulate(t *testing.T, p *Plan) (r Result, log *lines) {
	t.Helper()
	log = &lines{}
	watchdog := time.AfterFunc(hang, func() {
		fmt.Fprintf(os.Stderr, "SIM_SEED=%d does not end:\n%s\n%s\n", p.Seed, log.tail(), busy())
		os.Exit(2)
	})
	defer watchdog.Stop()
	defer func() {
		if x := recover(); x != nil {
			fmt.Fprintf(os.Stderr, "SIM_SEED=%d panics:\n%s\n", p.Seed, log.tail())
			panic(x)
		}
	}()
	synctest.Test(t, func(*testing.T) { r = Run(p, log.add) })
	return r, log
}

// busy returns the goroutines that keep virtual time from passing.
func busy() string {
	stacks := make([]byte, 64<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	var all []string
	for _, stack := range strings.Split(string(stacks), "\n\n") {
		if strings.Contains(stack, "synctest bubble") && !strings.Contains(stack, "(durable)") {
			all = append(all, stack)
		}
	}
	return strings.Join(all[:min(len(all), 20)], "\n\n")
}

// lines are a log.
type lines struct {
	mu  sync.Mutex
	all []string
}

func (l *lines) add(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, line)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.all, "\n")
}

// tail returns the last lines.
func (l *lines) tail() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.all[max(0, len(l.all)-50):], "\n")
}
