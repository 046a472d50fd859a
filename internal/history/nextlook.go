package history

import "time"

// Azure appends to each shard of an open segment once a minute, if there is something to append (measured in real
// chunks). The times of appends have whole seconds, so a look a second later could come just before the next append.
const (
	appendInterval = time.Minute
	behindAppend   = 2 * time.Second
)

// NextLook returns how long to wait before the next look at a shard. The last look was late by this much after an
// append, or found none if late is negative.
//
// Looks come every interval. Where they are in the minute is chance, so without more they would be late by half an
// interval on average. If some looks of each minute are at the same place as those of the minute before, and one was
// late, a longer wait moves all later ones: the next append is found as soon as it is there, with fewer requests than
// before, not more. A clock that differs from the service's moves them elsewhere, which is no worse than chance.
func NextLook(interval, late time.Duration) time.Duration {
	if appendInterval%interval != 0 || late <= behindAppend || late > interval+time.Second {
		return interval
	}
	return 2*interval - late + behindAppend
}
