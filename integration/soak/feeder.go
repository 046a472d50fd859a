package soak

import (
	"context"
	"math/rand/v2"
	"time"

	"blobfeed/integration/chaos"
	"blobfeed/internal/testing/feedsim"
)

// feeder appends to a feed in real time: a few events every few seconds, and seldom many.
type feeder struct {
	feed     *feedsim.Feed
	interval time.Duration // of segments
	rng      *rand.Rand
	expect   func(feedsim.Event)
}

const (
	tick      = 3 * time.Second
	usual     = 90 // events at a tick, on average
	burst     = 5000
	burstOdds = 80 // one tick of so many
)

// run feeds until stop ends. A segment is begun at its hour, and the one before finalized a while later, as Azure does.
func (f *feeder) run(ctx, stop context.Context) error {
	return chaos.Feed(ctx, stop, f.feed.Finalize, tick, nil, func() error {
		passed := time.Since(f.feed.Segment())
		if passed >= f.interval {
			if err := f.feed.Turn(ctx); err != nil {
				return err
			}
		} else if passed >= f.interval/20 {
			if err := f.feed.Settle(ctx); err != nil {
				return err
			}
		}
		n := 1 + f.rng.IntN(2*usual)
		if f.rng.IntN(burstOdds) == 0 {
			n = burst
		}
		if f.rng.IntN(100) == 0 {
			f.feed.Roll(f.rng.IntN(shards))
		}
		return f.feed.Append(ctx, n, f.expect)
	})
}

const shards = 3

func newFeed(sink feedsim.Sink, interval time.Duration) (*feedsim.Feed, error) {
	return feedsim.New(sink, feedsim.Spec{Seed: uint64(time.Now().UnixNano()), Start: time.Now().Truncate(interval),
		Interval: interval,
		Now:      time.Now, Shards: shards, BlockEvents: 50, Blobs: 5000, HotShare: 0.2, Versions: []int{6},
		TwiceEvery: 1000})
}
