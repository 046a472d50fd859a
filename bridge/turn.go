package bridge

import "context"

// turn is a lock that may be held for long, such as during requests. A channel, not a mutex, so that a waiter can stop
// when its context ends.
type turn chan struct{} // capacity 1

func newTurn() turn { return make(turn, 1) }

// take returns when it is the caller's turn, or why the wait has ended.
func (t turn) take(ctx context.Context) error {
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (t turn) leave() { <-t }

// poke makes a channel of capacity 1 full.
func poke(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
