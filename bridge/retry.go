package bridge

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"blobfeed/internal/pause"
	"blobfeed/offsets"
)

// onceAttempts is how often --once tries before it gives up; otherwise there is no limit.
const onceAttempts = 6

const maxDelay = 30 * time.Second

var firstDelay = 200 * time.Millisecond // tests have a shorter one

// retryFunc calls f until it succeeds, or gives up.
type retryFunc func(ctx context.Context, f func(context.Context) error) error

// attempt calls f until it succeeds, and calls failed after every failure that it retries. It gives up when ctx ends,
// when another attempt cannot help, and, with once, after onceAttempts.
func attempt(ctx context.Context, once bool, failed func(error), f func(context.Context) error) error {
	for n := 1; ; n++ {
		began := time.Now()
		err := f(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if permanent(err) {
			return err
		}
		if once && n >= onceAttempts {
			return &givenUpError{err}
		}
		failed(err)
		if time.Since(began) > maxDelay {
			n = 1 // it worked for a while: a new failure, not the old one
		}
		if err := pause.For(ctx, delay(n)); err != nil {
			return err
		}
	}
}

// givenUpError was retried often enough. A caller that retries, too, must not retry it.
type givenUpError struct{ error }

func (e *givenUpError) Unwrap() error { return e.error }

// permanent reports whether another attempt cannot help.
func permanent(err error) bool {
	var given *givenUpError
	var gap *GapError
	var settings *SettingsError
	var version *offsets.VersionError
	return errors.As(err, &gap) || errors.As(err, &given) || errors.As(err, &settings) || errors.As(err, &version)
}

// delay grows by powers of two and is spread, so that instances do not come back together.
func delay(attempt int) time.Duration {
	d := min(firstDelay<<min(attempt-1, 10), maxDelay)
	return d/2 + rand.N(d/2)
}
