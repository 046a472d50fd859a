// Package pause waits for a time, for the next attempt, for a turn, or for a place at a gate that limits requests. Each
// wait ends with its context.
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
