package catalog

import (
	"context"
	"sync"
	"time"

	"blobfeed/internal/pause"
)

// cache makes what belongs to a name when it is first asked for, and keeps it. Those that ask meanwhile wait for it.
// After an error the next one tries again.
type cache[T any] struct {
	make  func(ctx context.Context, name string) (T, error)
	holds time.Duration // how long a value is kept; 0 is without end

	mu sync.Mutex
	of map[string]*cached[T]
}

type cached[T any] struct {
	turn  pause.Turn
	value T         // guarded by turn
	made  time.Time // guarded by turn; zero: not yet
}

func newCache[T any](f func(context.Context, string) (T, error), holds time.Duration) *cache[T] {
	return &cache[T]{make: f, holds: holds, of: map[string]*cached[T]{}}
}

func (c *cache[T]) get(ctx context.Context, name string) (T, error) {
	c.mu.Lock()
	v := c.of[name]
	if v == nil {
		v = &cached[T]{turn: pause.NewTurn()}
		c.of[name] = v
	}
	c.mu.Unlock()
	var none T
	if err := v.turn.Take(ctx); err != nil {
		return none, err
	}
	defer v.turn.Leave()
	if v.made.IsZero() || c.holds > 0 && time.Since(v.made) > c.holds {
		value, err := c.make(ctx, name)
		if err != nil {
			return none, err
		}
		v.value, v.made = value, time.Now()
	}
	return v.value, nil
}
