package chaos

import (
	"context"
	"math/rand/v2"
	"time"

	"blobfeed/internal/feedsim"
)

// feeder appends to a feed as if time went fast.
type feeder struct {
	feed   *feedsim.Feed
	rng    *rand.Rand
	expect func(feedsim.Event)
	work   chan func() // to be done between two steps; nil: nothing
}

const (
	feederTick = 75 * time.Millisecond
	burst      = 3000 // events, now and then
)

// run goes on until stop ends; then it finalizes the last segment. The feed has been opened.
func (f *feeder) run(ctx, stop context.Context) error {
	tick := time.NewTicker(feederTick)
	defer tick.Stop()
	left := f.rng.IntN(100) // appends of this segment
	for {
		select {
		case <-stop.Done():
			return f.feed.Finalize(ctx)
		case do := <-f.work:
			do()
			continue
		case <-tick.C:
		}
		n := 1 + f.rng.IntN(60)
		if f.rng.IntN(200) == 0 {
			n = burst
		}
		if f.rng.IntN(10) == 0 {
			f.feed.Roll(f.rng.IntN(spec.Shards), f.rng.IntN(spec.Shards))
		}
		if err := f.feed.Append(ctx, n, f.expect); err != nil {
			return err
		}
		if left--; left < 0 {
			left = f.rng.IntN(100)
			if err := f.feed.Next(ctx); err != nil {
				return err
			}
		}
	}
}

// spec is of all feeds but its seed. Half blocks can be seen, as readers of the service see them.
var spec = feedsim.Spec{Shards: 8, EventsPerSegment: 2000, BlockEvents: 20, Blobs: 2000, HotShare: 0.2,
	Versions: []int{1, 4, 5, 6}, TornAppends: true}
