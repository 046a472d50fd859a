package history

import (
	"testing"
	"time"
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
				at += NextLook(interval, late)
				looks++
			}
			if most := int(time.Hour/interval) + 1; looks > most {
				t.Errorf("interval %s, appends at %s: %d looks, want at most %d", interval, appends, looks, most)
			}
		}
	}
	const odd = 7 * time.Second // no number of them is a minute, so their place changes
	if got := NextLook(odd, 5*time.Second); got != odd {
		t.Errorf("got %s", got)
	}
}
