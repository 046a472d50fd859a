package chaos

import (
	"context"
	"math/rand/v2"
	"time"

	"blobfeed/internal/testing/feedsim"
)

// feeder appends to a feed as if time went fast.
type feeder struct {
	*World
	rng   *rand.Rand
	judge *Judge
	work  chan func() // to be done between two steps
}

const (
	feederTick = 75 * time.Millisecond
	burst      = 3000 // events, now and then
)

// run feeds until stop ends.
func (f *feeder) run(ctx, stop context.Context) error {
	left := f.rng.IntN(100) // appends of this segment
	return Feed(ctx, stop, f.finish, feederTick, f.work, func() error {
		n := 1 + f.rng.IntN(60)
		if f.rng.IntN(200) == 0 {
			n = burst
		}
		if f.rng.IntN(10) == 0 {
			f.feed.Roll(f.rng.IntN(spec.Shards), f.rng.IntN(spec.Shards))
		}
		f.change(f.rng, n)
		if err := f.publish(ctx, f.rng, f.judge.Expect); err != nil {
			return err
		}
		// The initial scan begins in the first segment, so all events of the feed have to come.
		if left--; left < 0 && f.judge.Begun() {
			left = f.rng.IntN(100)
			return f.turn(ctx, f.judge.Expect)
		}
		return nil
	})
}

// finish finalizes the last segment, which has all that has changed, when it is over.
func (f *feeder) finish(ctx context.Context) error {
	if err := f.publish(ctx, nil, f.judge.Expect); err != nil {
		return err
	}
	f.clock.Store(f.feed.Segment().Add(time.Hour + time.Minute).UnixNano())
	return f.feed.Finalize(ctx)
}

// Feed takes a step at every tick until stop ends, and then calls finish. Between two steps it does what comes on work,
// which may be nil.
func Feed(
	ctx, stop context.Context, finish func(context.Context) error, every time.Duration, work <-chan func(),
	step func() error,
) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-stop.Done():
			return finish(ctx)
		case do := <-work:
			do()
		case <-tick.C:
			if err := step(); err != nil {
				return err
			}
		}
	}
}

// spec is of all feeds but its seed. Half blocks can be seen, as readers of the service see them.
var spec = feedsim.Spec{Shards: 8, EventsPerSegment: 2000, BlockEvents: 20, Blobs: 2000, HotShare: 0.2,
	Versions: []int{1, 4, 5, 6}, TornAppends: true, TwiceEvery: 100}
