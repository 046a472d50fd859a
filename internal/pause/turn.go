package pause

import "context"

// Turn is a lock that may be held for long, such as during requests. A channel, not a mutex, so that a waiter can stop
// when its context ends.
type Turn chan struct{} // capacity 1

// NewTurn returns a turn that is free.
func NewTurn() Turn { return make(Turn, 1) }

// Take returns when it is the caller's turn, or why the wait has ended.
func (t Turn) Take(ctx context.Context) error {
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Leave gives the turn to the next.
func (t Turn) Leave() { <-t }
