package main

import (
	"context"
	"runtime/debug"
	"time"
)

// idleAfter is how long nothing must have been delivered before memory is given back. The engine has let go of its
// buffers after a poll; the runtime alone would collect them within two minutes, and return the pages in its own time.
const idleAfter = 30 * time.Second

// giveBack gives memory back to the system, once each time that deliveries have ceased, until ctx ends.
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

// idle notices when a count has stopped.
type idle struct {
	last  int64
	known bool // that it has
}

// now reports whether the count stands still since the last call, for the first time since it moved.
func (i *idle) now(count int64) bool {
	still := count == i.last
	first := still && !i.known
	i.last, i.known = count, still
	return first
}
