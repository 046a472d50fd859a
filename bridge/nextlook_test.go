package bridge

import (
	"testing"
	"testing/synctest"
	"time"

	"blobfeed/internal/testing/feedsim"
	"blobfeed/source"
)

// Whenever in the minute the service appends and the first look comes, later appends are found at once, and the looks
// of an hour are not more than without the wait that moves them.
func TestNextLook(t *testing.T) {
	for _, interval := range []time.Duration{5 * time.Second, 15 * time.Second, 30 * time.Second} {
		for phase := range 60 {
			appends := time.Duration(phase)*time.Second + 300*time.Millisecond // their place in the minute
			looks, at, seen := 0, time.Duration(0), appends-appendInterval
			for at < time.Hour {
				late := time.Duration(-1)
				if last := (at - appends).Truncate(appendInterval) + appends; last > seen && last <= at {
					seen, late = last, at-last.Truncate(time.Second)
					if at > 3*time.Minute && late > behindAppend+time.Second {
						t.Fatalf("interval %s, appends at %s: at %s an append was found %s late", interval, appends, at,
							late)
					}
				}
				at += nextLook(interval, late)
				looks++
			}
			if most := int(time.Hour/interval) + 1; looks > most {
				t.Errorf("interval %s, appends at %s: %d looks, want at most %d", interval, appends, looks, most)
			}
		}
	}
	const odd = 7 * time.Second // no number of them is a minute, so their place changes
	if got := nextLook(odd, 5*time.Second); got != odd {
		t.Errorf("got %s", got)
	}
}

// The next looks of a lease with one shard come right after the appends.
func TestLooksFollowAppends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, live := simulated(t, feedsim.Spec{Shards: 2})
		m.grew = map[string]time.Time{}
		must(t, live.Append(t.Context(), 20, nil))
		time.Sleep(9 * time.Second) // so late is the look
		feed := source.New(m, source.Options{})
		sh := New(Options{Feed: feed, PollInterval: 15 * time.Second, Observer: Observers{}}).instance
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
