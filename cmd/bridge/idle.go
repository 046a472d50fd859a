package main

import (
	"context"
	"runtime/debug"
	"time"
)

// idleAfter is the time without deliveries after which memory is given back. The engine frees its buffers after a poll,
// but the runtime alone would collect them only within two minutes, and return the pages later.
const idleAfter = 30 * time.Second

// giveBack returns memory to the system, once each time that deliveries stop, until ctx ends.
func giveBack(ctx context.Context, delivered func() int64) {
	t := time.NewTicker(idleAfter)
	defer t.Stop()
	var i idle
	for {
		select {
		case <-t.C:
			if i.now(delivered()) {
				debug.FreeOSMemory()
			}
		case <-ctx.Done():
			return
		}
	}
}

// idle detects that a count has stopped.
type idle struct {
	last  int64
	known bool // the stop is reported
}

// now reports whether the count is unchanged since the last call, once for each stop.
func (i *idle) now(count int64) bool {
	still := count == i.last
	first := still && !i.known
	i.last, i.known = count, still
	return first
}
