package ops

import (
	"context"
	"time"
)

// Of the last hour there is a sample every ten seconds. The first ones are closer, so that there is something to see.
const (
	sampleInterval = 10 * time.Second
	samplesKept    = int(time.Hour / sampleInterval)
	firstInterval  = 2 * time.Second
	firstSamples   = 10
)

// History is the last hour of an instance, oldest first: one value of each column per sample. What was unknown is null.
// It is kept here, not in the page, so that a reload does not empty the charts.
type History struct {
	Interval float64    `json:"interval_seconds"`
	Time     []int64    `json:"time"` // Unix seconds
	Azure    []*float64 `json:"azure_seconds"`
	Bridge   []*float64 `json:"bridge_seconds"`
	Events   []float64  `json:"events_per_second"`
	Bytes    []float64  `json:"bytes_per_second"`
	Resolved []*float64 `json:"resolved_seconds"` // age of the resolved time
	Verdict  []string   `json:"verdict"`
}

// sample is a row of the history.
type sample struct {
	at                      time.Time
	azure, bridge, resolved *float64
	events, bytes           float64
	verdict                 string
}

// samples is a ring.
type samples struct {
	all  [samplesKept]sample
	next int
	full bool

	events, bytes int // counted until the last sample
	at            time.Time
}

// Keep takes samples until ctx ends.
func (m *Monitor) Keep(ctx context.Context) {
	for n, wait := 1, firstInterval; ; n++ {
		if m.Sample(); n == firstSamples {
			wait = sampleInterval
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
	}
}

// Sample takes a sample of this moment.
func (m *Monitor) Sample() {
	s := m.Snapshot()
	m.mu.Lock()
	defer m.mu.Unlock()
	r := &m.samples
	r.all[r.next] = r.sample(s)
	r.at, r.events, r.bytes = s.Now, s.SinceStart.Events, s.SinceStart.Bytes
	r.next = (r.next + 1) % samplesKept
	r.full = r.full || r.next == 0
}

// sample returns the sample of a moment, with the rates since the last one.
func (r *samples) sample(s *Status) sample {
	now := sample{
		at: s.Now, azure: s.Lag.Azure, bridge: s.Lag.Bridge, resolved: s.Lag.Resolved, verdict: s.Verdict.Code,
	}
	if took := s.Now.Sub(r.at).Seconds(); !r.at.IsZero() && took > 0 {
		now.events = float64(s.SinceStart.Events-r.events) / took
		now.bytes = float64(s.SinceStart.Bytes-r.bytes) / took
	}
	return now
}

// LastHour returns the samples, and this moment behind them: charts end now, and begin with the first second.
func (m *Monitor) LastHour() *History {
	s := m.Snapshot()
	m.mu.Lock()
	defer m.mu.Unlock()
	r := &m.samples
	var all []sample
	if r.full {
		all = append(all, r.all[r.next:]...)
	}
	all = append(all, r.all[:r.next]...)
	n := len(all)
	if n > 0 && s.Now.After(r.at) {
		now, settled := r.sample(s), time.Second
		if n > 1 {
			settled = r.at.Sub(all[n-2].at) / 2
		}
		if s.Now.Sub(r.at) < settled { // a rate of a moment would be a stroke at the end of the chart
			now.events, now.bytes = all[n-1].events, all[n-1].bytes
		}
		if s.Now.Unix() == r.at.Unix() { // two points at one place would be one, too
			n--
		}
		all, n = append(all[:n], now), n+1
	}
	h := &History{
		Interval: sampleInterval.Seconds(), Time: make([]int64, n),
		Azure: make([]*float64, n), Bridge: make([]*float64, n), Resolved: make([]*float64, n),
		Events: make([]float64, n), Bytes: make([]float64, n), Verdict: make([]string, n),
	}
	for i := range all {
		s := &all[i]
		h.Time[i], h.Azure[i], h.Bridge[i], h.Resolved[i] = s.at.Unix(), s.azure, s.bridge, s.resolved
		h.Events[i], h.Bytes[i], h.Verdict[i] = s.events, s.bytes, s.verdict
	}
	return h
}

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

// per returns the mean by the second over the window before this second, or since the start of the first transaction if
// that is later: what an instance needs to start is not part of its speed.
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
