package feedsim

import "time"

// ticksPerSecond: the feed's times have seven digits.
const ticksPerSecond = int64(time.Second / 100)

// clock spreads the events of a segment over its interval, in ticks. Of all events of a blob the later has the later
// time; blobs are apart by up to jitter steps, so that the events of different blobs are not sorted.
type clock struct {
	step, unit int64
	last       int64 // where steps end
	limit      int64 // how many events there can be
}

const jitter = 97

func newClock(interval time.Duration, events int) clock {
	total := int64(interval / 100)
	limit, spread := total/10, total/20
	step := (total - limit - spread) / int64(events)
	return clock{step: step, unit: min(step/4, spread/jitter), last: step * int64(events), limit: limit}
}

// at returns when the n-th event of a segment is, if it is of the blob with this hash. Even without a step each is a
// tick after the one before. With limit ticks left for that, all are inside the interval.
func (c clock) at(n int64, hash uint32) int64 {
	return min(n*c.step, c.last) + n + int64(hash%jitter)*c.unit
}

// live is at, for events that happen as time goes by: passed is how much of it since the segment began. What passed
// never falls.
func (c clock) live(passed, n int64, hash uint32) int64 {
	return min(max(0, passed-int64(hash%jitter)*liveUnit), c.last) + n
}

// liveUnit: the events of different blobs are apart by up to a second.
const liveUnit = ticksPerSecond / jitter

// newLiveClock keeps less for ticks: in the last seconds of a segment time would stand still.
func newLiveClock(interval time.Duration) clock {
	total := int64(interval / 100)
	return clock{last: total - total/1000 - 1, limit: total / 1000}
}

// stamper writes times. It remembers the day, since the next event is mostly of the same one.
type stamper struct {
	day  int64
	date [10]byte
}

// stamp writes 2006-01-02T15:04:05.0000000Z into b, of ticks since 1970.
func (s *stamper) stamp(b []byte, ticks int64) {
	sec, frac := ticks/ticksPerSecond, ticks%ticksPerSecond
	day, sec := sec/86400, sec%86400
	if s.date[0] == 0 || day != s.day {
		s.day = day
		copy(s.date[:], time.Unix(day*86400, 0).UTC().Format(time.DateOnly))
	}
	copy(b, s.date[:])
	b[10], b[13], b[16], b[19], b[27] = 'T', ':', ':', '.', 'Z'
	digits(b[11:13], sec/3600)
	digits(b[14:16], sec/60%60)
	digits(b[17:19], sec%60)
	digits(b[20:27], frac)
}

// digits fills b with the decimal digits of v.
func digits(b []byte, v int64) {
	for i := len(b) - 1; i >= 0; i-- {
		b[i] = byte('0' + v%10)
		v /= 10
	}
}
