package ops

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"blobfeed/bridge"
	"blobfeed/internal/plain"
	"blobfeed/internal/status"
	"blobfeed/offsets"
	"blobfeed/source"
)

// Status is the answer of /status: the report of package status on the state that the instance holds, and what only the
// instance knows. It is part of the interface.
type Status struct {
	status.Status
	Info
	UpSince  time.Time `json:"up_since"`
	Ready    bool      `json:"ready"`
	Draining bool      `json:"draining"`
	Reasons  []Reason  `json:"reasons"` // why it is unready
	Watchdog float64   `json:"watchdog_seconds"`

	Problems []status.Problem `json:"problems"` // what is wrong at this moment, the worst first

	Throughput Throughput `json:"throughput"`
	SinceStart Counts     `json:"since_start"` // of this instance

	Partitions []Partition `json:"partitions"`   // at most 100
	Recent     []Record    `json:"last_records"` // the last 8, by the time of their events, newest first
}

// Reason says why an instance is unready.
type Reason struct {
	Code   string `json:"code"` // starting, draining, no_member, stuck, failed
	Lease  *int32 `json:"lease,omitempty"`
	Detail string `json:"detail"`
	Remedy string `json:"remedy,omitempty"` // what to do about it, if that is known
}

// Throughput is the mean of the last 30 s.
type Throughput struct {
	Events float64 `json:"events_per_second"`
	Bytes  float64 `json:"bytes_per_second"`
}

// Snapshot returns the status of this moment.
func (m *Monitor) Snapshot() *Status {
	state := m.state()
	connected := state != nil
	if !connected {
		state = &offsets.State{}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	s := &Status{
		Status: *status.Of(m.name, state, status.Group{}, now), Info: m.info, UpSince: m.started,
		Draining: m.draining, Watchdog: m.watchdog.Seconds(), SinceStart: m.counts.clone(),
	}
	s.Feed, s.Status.Replay = m.feed, s.Status.Replay || m.info.Replay
	s.Throughput.Events, s.Throughput.Bytes = m.rate.per(now, m.begun)
	s.Errors = slices.Clone(m.errors)
	slices.Reverse(s.Errors)
	s.Partitions, s.Recent = m.partitions(state.Frontier), append([]Record{}, m.recent...)
	slices.SortStableFunc(s.Recent, func(a, b Record) int { return b.Time.Compare(a.Time) })
	if state.Frontier != nil {
		m.beyond(s, state.Frontier)
		s.Lacks(m.older)
		m.look(s, state.Frontier)
	}
	m.own(s, now)
	if p := s.Progress; p != nil && p.Rate != nil && p.Item == "events" && alone(s) {
		p.Rate = &s.Throughput.Events // the state has the mean of the whole catch-up
	}
	m.lag(s, now)
	m.reasons(s, connected)
	s.Ready = len(s.Reasons) == 0
	m.judge(s, connected, now)
	return s
}

// state returns the state that the engine has; nil if there is none. The monitor is not locked: the engine calls us.
func (m *Monitor) state() *offsets.State {
	m.mu.Lock()
	engine := m.engine
	m.mu.Unlock()
	if engine == nil {
		return nil
	}
	return engine.State()
}

// beyond says of a position that the feed does not have what the owner of lease 0 knows, which looks. If that is
// another instance, there is only what the state says.
func (m *Monitor) beyond(s *Status, f *offsets.Frontier) {
	l := m.leases[0]
	if l != nil || !m.member {
		looked := l != nil && !l.idle.IsZero() && !l.idle.Before(f.Time)
		s.LookBeyond(f, looked)
	}
}

// look adds what the last look at the feed has shown. A look from before a seek says nothing of the new position: what
// it took for the newest segment may be the place where the bridge was.
func (m *Monitor) look(s *Status, f *offsets.Frontier) {
	h := m.history
	if h == nil || h.epoch != f.Epoch {
		return
	}
	at, newest := f.At(), source.SegmentAt(h.Newest)
	beyond := s.Position.Beyond != ""
	// To a place that need not be a segment.
	moved := beyond || status.Unbegun(f) || f.Seek != nil && f.Current == (source.Segment{})
	if !beyond {
		s.Position.Headroom = seconds(h.Headroom)
	}
	if !moved && newest.Compare(at) < 0 { // it has been delivered since the look
		newest = at
	}
	if !h.Newest.IsZero() && at != (source.Segment{}) && !(moved && newest == at) {
		s.Position.Newest = newest.String()
		s.Position.Behind = seconds(max(0, h.Newest.Sub(at.Time())))
	}
}

// alone reports whether no other instance works.
func alone(s *Status) bool {
	return !slices.ContainsFunc(s.Leases, func(l status.Lease) bool { return l.State == status.Elsewhere })
}

// own replaces what the state says of leases by what this instance knows of those that it holds.
func (m *Monitor) own(s *Status, now time.Time) {
	for i := range s.Leases {
		l := &s.Leases[i]
		if !l.Failing { // it may be long over
			l.Error = nil
		}
		if l.State == status.Free {
			l.State = status.Elsewhere
		}
		own := m.leases[l.Lease]
		if own == nil {
			continue
		}
		own.show(l, now, m.watchdog)
		if l.Event != nil && (s.Position.Event == nil || l.Event.After(*s.Position.Event)) {
			s.Position.Event, s.Lag.Event = l.Event, seconds(max(0, now.Sub(*l.Event)))
		}
	}
}

func (own *lease) show(l *status.Lease, now time.Time, watchdog time.Duration) {
	l.Here, l.Errors, l.Error, l.Event = true, own.errors, own.err, status.Known(own.last)
	if l.Failing = own.failing != nil; l.Failing {
		l.Error = own.failing
	}
	if !own.commit.IsZero() {
		l.Committed = status.Known(own.commit)
	}
	switch own.activity {
	case bridge.Waiting:
		l.State = status.Waiting
		return
	case bridge.Drained:
		l.State = status.Drained
		if own.errors == 0 {
			return
		}
	default:
		l.State = status.Working
	}
	l.Working = now.Sub(own.since).Seconds()
	if now.Sub(own.since) > watchdog {
		l.State = status.Stuck
	}
}

// lag splits how late the newest data is into the service's part, which is known when an open segment was read to its
// end, and the bridge's. A lease that works is late by the time since everything before was last known to be delivered.
// For a lease without a first commit, or one that can't look at the feed, that is unknown, and so zero is not reported.
//
// If all of the current segment is delivered, what is in the newest segment waits until the service finalizes those
// before: that is the service's part.
func (m *Monitor) lag(s *Status, now time.Time) {
	if m.publish != nil {
		s.Lag.Azure = seconds(*m.publish)
	}
	behind := s.Position.Behind
	if l := m.leases[0]; l != nil && l.activity == bridge.Drained && behind != nil && *behind > 0 {
		if held := now.Sub(m.history.Newest).Seconds(); s.Lag.Azure == nil || held > *s.Lag.Azure {
			s.Lag.Azure = &held
		}
	}
	if s.Position.Beyond != "" {
		return // nothing waits there, and nothing is in time
	}
	unknown := false
	for _, l := range m.leases {
		if l.activity == bridge.Drained && l.errors > 0 {
			unknown = true // it can't look for more
			continue
		}
		finished := !l.idle.IsZero() && l.caught.IsZero() && s.Progress == nil
		if finished && l.failing != nil {
			unknown = true // the same, at the end of a finished feed
			continue
		}
		var late time.Duration
		// At the end of a finished feed, a lease that waits looks for more from time to time: that is not late yet.
		if l.activity == bridge.Working && (!finished || now.Sub(l.since) >= lookTime) {
			at := l.caught
			if !l.last.IsZero() && m.publish != nil && l.last.Add(*m.publish).After(at) {
				at = l.last.Add(*m.publish)
			} else if l.last.After(at) {
				at = l.last
			}
			if at.IsZero() {
				unknown = true // no commit yet
				continue
			}
			late = max(0, now.Sub(at))
		}
		if s.Lag.Bridge == nil || late.Seconds() > *s.Lag.Bridge {
			s.Lag.Bridge = seconds(late)
		}
	}
	if unknown && s.Lag.Bridge != nil && *s.Lag.Bridge == 0 {
		s.Lag.Bridge = nil
	}
}

// lookTime is how long a lease may work before it is late.
const lookTime = 2 * time.Second

func seconds(d time.Duration) *float64 {
	s := d.Seconds()
	return &s
}

// Example is a record of an invented event under the settings: what consumers get.
type Example struct {
	Key     string   `json:"key"`
	Value   string   `json:"value"`
	Headers []string `json:"headers"` // name: value
}

// Partition is what this instance has written to a partition since its start, aborted transactions included.
type Partition struct {
	Topic     string    `json:"topic"`
	Partition int32     `json:"partition"`
	Records   int       `json:"records"` // and markers
	Last      time.Time `json:"last"`
}

const (
	// mostWritten bounds the memory: more partitions are not counted.
	mostWritten = 10_000
	// mostPartitions is how many the status has.
	mostPartitions = 100
)

type partition struct {
	topic string
	p     int32
}

type written struct {
	records int
	last    time.Time
}

// Wrote takes note of a batch that the brokers have taken.
func (m *Monitor) Wrote(topic string, p int32, records int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	at := partition{topic, p}
	have, known := m.written[at]
	if known || len(m.written) < mostWritten {
		m.written[at] = written{have.records + records, m.now()}
	}
}

// partitions returns what was written to the topics of records, by topic and partition.
func (m *Monitor) partitions(f *offsets.Frontier) []Partition {
	out := []Partition{}
	if f == nil {
		return out
	}
	for at, w := range m.written {
		if _, ours := f.Topics[at.topic]; ours {
			out = append(out, Partition{at.topic, at.p, w.records, w.last})
		}
	}
	slices.SortFunc(out, func(a, b Partition) int {
		return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
	})
	return out[:min(len(out), mostPartitions)]
}

// Record is one that this instance has committed.
type Record struct {
	Topic     string    `json:"topic"`
	Partition int32     `json:"partition"`
	Offset    int64     `json:"offset"`
	Key       string    `json:"key"`  // its first 256 bytes
	Type      string    `json:"type"` // of the event; empty if headers do not have it
	Time      time.Time `json:"time"` // of the event
	Bytes     int       `json:"bytes"`
}

const (
	// recordsKept is how many records the status has.
	recordsKept = 8
	// keyShown is how much of a key there is at most.
	keyShown = 256
)

// keep keeps the last records of a commit. The monitor is locked.
func (m *Monitor) keep(c bridge.Commit) {
	var all []Record
	for _, r := range c.Recent.Records() {
		key := strings.TrimPrefix(r.Key, "/blobServices/default/containers/") // of Avro
		if key != r.Key {
			key = strings.Replace(key, "/blobs/", "/", 1)
		}
		switch {
		case strings.HasPrefix(key, "\x00"):
			key = "(Avro)"
		case len(r.Key) >= keyShown:
			key = strings.ToValidUTF8(key, "") + "…"
		}
		all = append(all, Record{
			Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, Key: plain.Line(strings.ToValidUTF8(key, "")),
			Type: strings.TrimPrefix(r.Type, "Microsoft.Storage."), Time: r.Time.UTC(), Bytes: r.Bytes,
		})
	}
	all = append(all, m.recent...)
	m.recent = all[:min(len(all), recordsKept)]
}
