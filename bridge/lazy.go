package bridge

import (
	"context"
	"sync"
	"time"
)

// lazy makes what belongs to a name when it is first asked for, and keeps it. Those that ask meanwhile wait for it.
// After an error the next one tries again.
type lazy[T any] struct {
	make  func(ctx context.Context, name string) (T, error)
	holds time.Duration // how long a value is kept; 0 is without end
	now   func() time.Time

	mu sync.Mutex
	of map[string]*lazyValue[T]
}

type lazyValue[T any] struct {
	turn  turn
	value T         // guarded by turn
	made  time.Time // guarded by turn; zero: not yet
}

func newLazy[T any](f func(context.Context, string) (T, error)) *lazy[T] {
	return &lazy[T]{make: f, now: time.Now, of: map[string]*lazyValue[T]{}}
}

func (l *lazy[T]) get(ctx context.Context, name string) (T, error) {
	l.mu.Lock()
	v := l.of[name]
	if v == nil {
		v = &lazyValue[T]{turn: newTurn()}
		l.of[name] = v
	}
	l.mu.Unlock()
	var none T
	if err := v.turn.take(ctx); err != nil {
		return none, err
	}
	defer v.turn.leave()
	if v.made.IsZero() || l.holds > 0 && l.now().Sub(v.made) > l.holds {
		value, err := l.make(ctx, name)
		if err != nil {
			return none, err
		}
		v.value, v.made = value, l.now()
	}
	return v.value, nil
}
