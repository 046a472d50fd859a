package bridge

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/internal/mutation"
	"blobfeed/offsets"
)

// leaveTimeout is for the group's answer, after the workers have ended.
const leaveTimeout = time.Second

// Run works until stop ends, or, with Once, until everything is delivered; it returns nil then. When stop ends, open
// transactions are committed and the leases handed over; when hard ends, transactions are left to be aborted.
func (b *Bridge) Run(stop, hard context.Context) error {
	stop, cancel := context.WithCancelCause(stop)
	defer cancel(nil)
	b.hard = hard
	b.fatal = func(err error) { cancel(&fatalError{err}) }
	b.finish = func() { cancel(nil) }

	sh := b.shared
	cl, err := kgo.NewClient(b.opts.Client...)
	if err != nil {
		return &SettingsError{Problem: fmt.Sprintf("creating the Kafka client: %v", err)}
	}
	defer cl.Close()
	sh.client, sh.rivals.client, sh.topics = cl, cl, sh.topicAdmin(cl)
	if err := sh.retry(stop, -1, sh.prepare); err != nil {
		return stopReason(stop, err)
	}
	b.view.Store(sh.view)
	var wg sync.WaitGroup
	defer wg.Wait()
	viewing, endView := context.WithCancel(hard)
	defer endView()
	wg.Go(func() {
		if err := sh.view.Run(viewing, b.opts.Client...); err != nil {
			b.fatal(err)
		}
	})
	wg.Go(func() { sh.watchHistory(viewing, b.keepsFrontier) })
	leave, err := offsets.Join(sh.cfg, b.opts.Name, b.opts.Session, b)
	if err != nil {
		return err
	}
	wg.Go(func() { b.finishWhen(stop, sh.awaitEnd) })
	if b.opts.Once {
		wg.Go(func() { b.finishWhen(stop, sh.awaitAll) })
	}
	<-stop.Done()
	mutation.Crash("leave", "begun")
	leaving, left := context.WithTimeout(context.Background(), b.opts.Shutdown+leaveTimeout)
	defer left()
	leave(leaving) // revokes every lease, so the workers commit and end
	b.Revoked(b.leasesHeld(), false)
	mutation.Crash("leave", "done")
	return stopReason(stop, nil)
}

// finishWhen stops the instance when f returns: its work is done, or cannot be.
func (b *Bridge) finishWhen(stop context.Context, f func(context.Context) error) {
	if err := f(stop); err != nil {
		b.fatal(err)
		return
	}
	b.finish()
}

// awaitEnd returns when the feed is delivered to END_TIME. The keeper ends it; all instances see it.
func (sh *shared) awaitEnd(ctx context.Context) error {
	s, err := sh.view.Await(ctx, func(s *offsets.State) bool {
		return sh.caughtUp(s) && s.Frontier != nil && s.Frontier.Ended
	})
	if err != nil {
		return err
	}
	// What prepare could not compare, for a transaction was open then: an end of other settings is not ours.
	return sh.opts.Compatible(s.Frontier.Feed, s.Frontier.Settings)
}

// fatalError is the cause of a stop that nobody asked for.
type fatalError struct{ error }

// stopReason returns a fatal error, and nil after a stop that was asked for.
func stopReason(stop context.Context, err error) error {
	var fatal *fatalError
	if errors.As(context.Cause(stop), &fatal) {
		return fatal.error
	}
	if stop.Err() != nil {
		return nil
	}
	return err
}
