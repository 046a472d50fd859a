package bridge

import (
	"context"
	"strings"

	"blobfeed/offsets"
)

// maxErrorText is how much of an error a cursor holds.
const maxErrorText = 500

// retry is the bridge's, and remembers what went wrong, for the cursor.
func (w *worker) retry(ctx context.Context, lease int32, f func(context.Context) error) error {
	return w.Bridge.retry(ctx, lease, func(ctx context.Context) error { return w.note(ctx, f(ctx)) })
}

// ask is retry for questions to the feed between two transactions: there is no next commit to tell of the error.
func (w *worker) ask(ctx context.Context, f func(context.Context) error) error {
	return w.Bridge.retry(ctx, w.p, func(ctx context.Context) error {
		err := w.note(ctx, f(ctx))
		if err != nil {
			_ = w.tell() // if the lease is gone, its next use says so
		}
		return err
	})
}

func (w *worker) note(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil {
		return err
	}
	text := err.Error()
	text = strings.ToValidUTF8(text[:min(len(text), maxErrorText)], "")
	w.failed.Store(&offsets.Failure{Time: w.Now().UTC(), Error: text})
	poke(w.trouble)
	return err
}

// tell commits the cursor with the last error, if it is another one than the cursor has: what stays wrong is written once.
// The observer does not hear of it, for it is no progress. No transaction may be open.
func (w *worker) tell() error {
	if w.lease == nil || !w.takeError() {
		return nil
	}
	return w.lease.Commit(w.held, w.cursor, nil)
}

// takeError puts the last error into the cursor. It reports whether the cursor had another.
func (w *worker) takeError() bool {
	f := w.failed.Load()
	if f == nil {
		return false
	}
	before := w.cursor.Error
	w.cursor.Error = f
	return before == nil || before.Error != f.Error
}

func poke(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
