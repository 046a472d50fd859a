package bridge

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"blobfeed/internal/history"
	"blobfeed/internal/pause"
	"blobfeed/internal/plain"
	"blobfeed/offsets"
)

// maxErrorText is how much of an error a cursor holds.
const maxErrorText = 500

// findings are what a worker remembers from one tenure of its lease to the next.
type findings struct {
	doubted string                          // lost history that an earlier tenure found; of the worker's goroutine
	failure atomic.Pointer[offsets.Failure] // the last error that was retried, of any goroutine
	failed  chan struct{}                   // capacity 1: there is one

	roundTime roundLimit // of the worker's goroutine
}

// remember keeps a failure for the cursor, and reports whether err is one.
func (f *findings) remember(ctx context.Context, now time.Time, err error) bool {
	if err == nil || ctx.Err() != nil {
		return false
	}
	text, do := plain.SplitRemedy(err)
	text, do = plain.Clip(text), plain.Clip(do) // without secrets
	text = strings.ToValidUTF8(text[:min(len(text), maxErrorText)], "")
	do = strings.ToValidUTF8(do[:min(len(do), maxErrorText)], "")
	f.failure.Store(&offsets.Failure{Time: now.UTC(), Error: text, Remedy: do})
	poke(f.failed)
	return true
}

// putInto puts the last failure into a cursor. It reports whether the cursor had another, or one that was over.
func (f *findings) putInto(c *offsets.Cursor) bool {
	last := f.failure.Load()
	if last == nil {
		return false
	}
	before, failing := c.Error, c.Failing
	c.Error, c.Failing = last, true
	return !failing || before == nil || before.Error != last.Error
}

// recent reports whether the last failure may still last: another attempt may be due.
func (f *findings) recent(now time.Time) bool {
	last := f.failure.Load()
	return last != nil && now.Sub(last.Time) <= maxDelay
}

// reportLoss reports lost history that is recorded.
func (o *Options) reportLoss(lease int32, gap *history.GapError) {
	o.Log.Warn("history is lost; continuing with what is left", "lease", lease, "lost", gap.At, "oldest", gap.Oldest)
	recorded := *gap
	recorded.Recorded = true
	o.Observer.Failed(lease, &recorded)
}

// onceAttempts is how often --once tries before it gives up; otherwise there is no limit.
const onceAttempts = 6

const maxDelay = 30 * time.Second

var firstDelay = 200 * time.Millisecond // tests have a shorter one

// retries returns how failures are retried, all of which failed gets.
func (o *Options) retries(failed func(error)) *pause.Retries {
	r := &pause.Retries{First: firstDelay, Most: maxDelay, Lasting: permanent, Failed: failed}
	if o.Once {
		r.Limit = onceAttempts
	}
	return r
}

// permanent reports whether another attempt cannot help.
func permanent(err error) bool {
	var given *pause.GivenUpError
	var gap *history.GapError
	var settings *plain.SettingsError
	var version *offsets.VersionError
	return errors.As(err, &gap) || errors.As(err, &given) || errors.As(err, &settings) || errors.As(err, &version)
}
