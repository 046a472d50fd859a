// Package pause waits for a time, for the next attempt, for a turn, or for a place at a gate that limits requests. Each
// wait ends with its context.
package pause

import (
	"context"
	"math/rand/v2"
	"sync"
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

// Retries say how something is retried.
type Retries struct {
	First, Most time.Duration // between two attempts
	Limit       int           // of attempts; 0: none
	Lasting     func(error) bool
	Failed      func(error) // gets every failure that is retried
}

// Do calls f until it succeeds. It gives up when ctx ends, when another attempt cannot help, and after the limit.
func (r *Retries) Do(ctx context.Context, f func(context.Context) error) error {
	for n := 1; ; n++ {
		began := time.Now()
		err := f(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if r.Lasting(err) {
			return err
		}
		if time.Since(began) > r.Most {
			n = 1 // it worked for a while: a new failure, not the old one
		}
		if r.Limit > 0 && n >= r.Limit {
			return &GivenUpError{err}
		}
		r.Failed(err)
		if err := For(ctx, r.Delay(n)); err != nil {
			return err
		}
	}
}

// Delay returns how long to wait after an attempt. It grows by powers of two and is spread, so that those that fail
// together do not come back together.
func (r *Retries) Delay(attempt int) time.Duration {
	d := min(r.First<<min(attempt-1, 10), r.Most)
	return d/2 + rand.N(d/2)
}

// GivenUpError was retried often enough. A caller that retries, too, must not retry it.
type GivenUpError struct{ Err error }

func (e *GivenUpError) Error() string { return e.Err.Error() }

func (e *GivenUpError) Unwrap() error { return e.Err }

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

// Gate limits requests. It halves the limit when the service is overloaded, and raises it by one after many good
// answers. It is safe for concurrent use.
type Gate struct {
	tokens chan struct{}

	mu    sync.Mutex
	limit int // at least 1
	debt  int // tokens to withdraw
	good  int // answers since the limit changed
	cuts  int // how often the limit was halved
	waits bool
}

// raiseAfter is how many good answers for each request at a time raise the limit by one.
const raiseAfter = 8

// NewGate returns a gate for a number of requests, which may become most.
func NewGate(limit, most int) *Gate {
	g := &Gate{tokens: make(chan struct{}, most), limit: limit}
	for range limit {
		g.tokens <- struct{}{}
	}
	return g
}

// Waits says whether somebody has to wait for answers. Meanwhile each good answer raises the limit, so that it follows
// the distance of the service, until that is overloaded for the first time.
func (g *Gate) Waits(waits bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.waits = waits
}

// Enter waits for a token.
func (g *Gate) Enter(ctx context.Context) (turn int, err error) {
	select {
	case <-g.tokens:
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.cuts, nil
}

// Leave returns the token. Of the requests that were under way together, only the first busy one halves the limit.
func (g *Gate) Leave(turn int, busy bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case busy && turn == g.cuts:
		less := max(1, g.limit/2)
		g.debt += g.limit - less
		g.limit, g.good = less, 0
		g.cuts++
	case !busy && g.limit < cap(g.tokens):
		if g.good++; g.good >= raiseAfter*g.limit || g.waits && g.cuts == 0 {
			g.limit, g.good = g.limit+1, 0
			g.debt--
		}
	}
	if g.debt > 0 {
		g.debt--
		return
	}
	for ; g.debt < 0; g.debt++ {
		g.tokens <- struct{}{}
	}
	g.tokens <- struct{}{}
}
