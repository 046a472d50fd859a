package bridge

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"blobfeed/offsets"
)

// onceAttempts is how often --once tries what fails before it gives up; otherwise there is no end.
const onceAttempts = 6

const (
	firstDelay = 200 * time.Millisecond
	maxDelay   = 30 * time.Second
)

// retry calls f until it succeeds, reporting every failure. It gives up when ctx ends, when trying again can't help,
// and, with Once, after onceAttempts.
func (b *Bridge) retry(ctx context.Context, lease int32, f func(context.Context) error) error {
	for attempt := 1; ; attempt++ {
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
		if b.Once && attempt >= onceAttempts {
			return &givenUpError{err}
		}
		b.Observer.Failed(lease, err)
		if time.Since(began) > maxDelay {
			attempt = 1 // it worked for a while: a new trouble, not the old one
		}
		if err := sleep(ctx, delay(attempt)); err != nil {
			return err
		}
	}
}

// givenUpError was tried often enough; a caller that tries, too, need not.
type givenUpError struct{ error }

func (e *givenUpError) Unwrap() error { return e.error }

func permanent(err error) bool {
	var given *givenUpError
	var gap *GapError
	var settings *SettingsError
	var version *offsets.VersionError
	return errors.As(err, &gap) || errors.As(err, &given) || errors.As(err, &settings) || errors.As(err, &version)
}

// delay grows by half a power of two and is spread, so that instances do not come back together.
func delay(attempt int) time.Duration {
	d := min(firstDelay<<min(attempt-1, 10), maxDelay)
	return d/2 + rand.N(d/2)
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
