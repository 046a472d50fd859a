// Package pause waits, and ends each wait with its context.
package pause

import (
	"context"
	"time"
)

// For waits for d. It returns the cause if ctx ends before.
func For(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
