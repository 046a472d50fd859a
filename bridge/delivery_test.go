package bridge

import (
	"testing"
	"testing/synctest"
	"time"

	"blobfeed/internal/testing/feedsim"
	"blobfeed/source"
)

// The next looks of a lease with one shard come right after the appends.
func TestLooksFollowAppends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, live := simulated(t, feedsim.Spec{Shards: 2})
		m.grew = map[string]time.Time{}
		must(t, live.Append(t.Context(), 20, nil))
		time.Sleep(9 * time.Second) // so late is the look
		feed := source.New(m, source.Options{})
		sh := New(Options{
			Observer: Observers{}, Feed: Feed{Source: feed}, Pace: Pace{PollInterval: 15 * time.Second},
		}).instance
		segment, err := feed.Manifest(t.Context(), source.SegmentAt(live.Segment()))
		must(t, err)
		d := &delivery{t: &tenure{instance: sh, opts: sh.opts, findings: &findings{}}, m: segment, listed: time.Now(),
			readers: map[int]*source.ShardReader{}}
		for _, shard := range segment.Shards {
			d.readers[shard] = feed.Shard(segment, shard, source.ShardPosition{})
			must(t, d.readers[shard].Poll(t.Context(), false))
		}
		waiting := func(shards []int, moved bool, want time.Duration) {
			t.Helper()
			d.shards = shards
			d.rested(moved, false)
			if got := time.Until(d.due); got != want {
				t.Errorf("shards %v, moved %t: it waits %s, want %s", shards, moved, got, want)
			}
		}
		waiting(segment.Shards[:1], true, (2*15-9+2)*time.Second)
		waiting(segment.Shards[:1], false, 15*time.Second)
		waiting(segment.Shards, true, 15*time.Second) // they may be appended to at different times
	})
}
