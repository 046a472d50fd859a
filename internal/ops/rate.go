package ops

import "time"

// window is the seconds that throughput is the mean of.
const window = 30

// rate counts by the second.
type rate struct {
	slots [window + 1]struct {
		second        int64
		events, bytes int
	}
}

func (r *rate) add(now time.Time, events, bytes int) {
	s := &r.slots[now.Unix()%int64(len(r.slots))]
	if s.second != now.Unix() {
		s.second, s.events, s.bytes = now.Unix(), 0, 0
	}
	s.events += events
	s.bytes += bytes
}

// per returns the mean by the second over the window before this second, or since the start if that is later.
func (r *rate) per(now, started time.Time) (events, bytes float64) {
	over := min(window, now.Unix()-started.Unix())
	if over <= 0 {
		over = 1
	}
	for _, s := range r.slots {
		if age := now.Unix() - s.second; age >= 0 && age <= over {
			events += float64(s.events)
			bytes += float64(s.bytes)
		}
	}
	return events / float64(over), bytes / float64(over)
}
