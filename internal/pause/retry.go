package pause

import (
	"context"
	"math/rand/v2"
	"time"
)

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
