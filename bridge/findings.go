package bridge

import (
	"context"
	"strings"
	"sync/atomic"
	"time"

	"blobfeed/offsets"
)

// maxErrorText is how much of an error a cursor holds.
const maxErrorText = 500

// findings are what a worker remembers from one hold of its lease to the next.
type findings struct {
	doubted string                          // lost history that an earlier hold found; of the worker's goroutine
	failure atomic.Pointer[offsets.Failure] // the last error that was retried, of any goroutine
	failed  chan struct{}                   // capacity 1: there is one
}

// remember keeps a failure for the cursor, and reports whether err is one.
func (f *findings) remember(ctx context.Context, now time.Time, err error) bool {
	if err == nil || ctx.Err() != nil {
		return false
	}
	text := err.Error()
	text = strings.ToValidUTF8(text[:min(len(text), maxErrorText)], "")
	f.failure.Store(&offsets.Failure{Time: now.UTC(), Error: text})
	poke(f.failed)
	return true
}

// putInto puts the last failure into a cursor. It reports whether the cursor had another.
func (f *findings) putInto(c *offsets.Cursor) bool {
	last := f.failure.Load()
	if last == nil {
		return false
	}
	before := c.Error
	c.Error = last
	return before == nil || before.Error != last.Error
}
