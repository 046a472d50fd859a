package ops

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"blobfeed/bridge"
	"blobfeed/offsets"
	"blobfeed/source"
)

// Status is the answer of /status: part of the interface. What is not known is null, or not there.
type Status struct {
	Info
	Started  time.Time `json:"started"`
	Now      time.Time `json:"now"`
	Ready    bool      `json:"ready"`
	Draining bool      `json:"draining"`
	Reasons  []Reason  `json:"reasons"` // why it is unready
	Watchdog float64   `json:"watchdog_seconds"`

	Position   Position   `json:"position"`
	Lag        Lag        `json:"lag"`
	Throughput Throughput `json:"throughput"`
	Totals     Counts     `json:"totals"` // of this instance since its start
	Topics     []Topic    `json:"topics"`
	Leases     []Lease    `json:"leases"`
	Errors     []Failure  `json:"errors"` // newest first
}

// Reason says why an instance is unready.
type Reason struct {
	Code   string `json:"code"` // starting, draining, no_member, stuck
	Lease  *int32 `json:"lease,omitempty"`
	Detail string `json:"detail"`
}

// Position is where the bridge, all instances together, is in the feed.
type Position struct {
	Completed string     `json:"completed,omitempty"` // segments
	Current   string     `json:"current,omitempty"`
	Newest    string     `json:"newest,omitempty"` // of the feed, when it was looked at last
	Resolved  *time.Time `json:"resolved"`
	Gaps      *int       `json:"gaps"`             // how often history was lost
	Headroom  *float64   `json:"headroom_seconds"` // history before the position, that retention may remove
	Behind    *float64   `json:"backlog_seconds"`  // from the current segment to the newest
	Event     *time.Time `json:"event_time"`       // latest that this instance committed
	Ended     bool       `json:"ended,omitempty"`  // END_TIME is reached
}

// Lag is how late this instance is, in seconds.
type Lag struct {
	// Azure is how long the service took to publish what came last.
	Azure *float64 `json:"azure_seconds"`
	// Bridge is how long what is published waits for us: 0 where nothing waits.
	Bridge *float64 `json:"bridge_seconds"`
}

// Throughput is the mean of the last 30 s.
type Throughput struct {
	Events float64 `json:"events_per_second"`
	Bytes  float64 `json:"bytes_per_second"`
}

// Topic is where records go.
type Topic struct {
	Name       string     `json:"name"`
	Partitions int32      `json:"partitions"`
	Resolved   *time.Time `json:"resolved"`
}

// Lease is one of all leases, whoever holds it.
type Lease struct {
	Lease     int32             `json:"lease"`
	Owner     string            `json:"owner,omitempty"`   // who acquired it last
	Here      bool              `json:"here"`              // this instance holds it
	State     string            `json:"state"`             // working, waiting, drained, stuck; elsewhere, unused
	Frontier  bool              `json:"with_frontier"`     // all up to the completed segment is delivered, and nothing of a later one
	Segment   string            `json:"segment,omitempty"` // else the one that it is in
	Done      bool              `json:"done"`              // with it
	Shards    map[string]string `json:"shards,omitempty"`  // shard -> chunk/offset
	Events    int64             `json:"events"`            // since the first start of the bridge
	Event     *time.Time        `json:"event_time"`
	Committed *time.Time        `json:"committed"`
	Working   float64           `json:"working_seconds"` // without a commit
	Errors    int               `json:"errors_in_a_row"`
	Error     string            `json:"error,omitempty"`
}

// Snapshot returns the status of this moment.
func (m *Monitor) Snapshot() *Status {
	m.mu.Lock()
	engine := m.engine
	m.mu.Unlock()
	var state *offsets.State
	if engine != nil {
		state = engine.State() // not under the lock: the engine calls us
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	s := &Status{Info: m.info, Started: m.started, Now: now, Draining: m.draining, Watchdog: m.watchdog.Seconds(), Totals: m.counts.clone()}
	s.Throughput.Events, s.Throughput.Bytes = m.rate.per(now, m.started)
	s.Errors = slices.Clone(m.errors)
	slices.Reverse(s.Errors)
	m.position(s, state)
	m.allLeases(s, state, now)
	m.lag(s, now)
	m.reasons(s, state != nil)
	s.Ready = len(s.Reasons) == 0
	return s
}

func (m *Monitor) position(s *Status, state *offsets.State) {
	if state == nil || state.Frontier == nil {
		return
	}
	f, p := state.Frontier, &s.Position
	p.Completed, p.Current, p.Gaps, p.Ended, p.Resolved = f.Completed.String(), f.Current.String(), &f.Gaps, f.Ended, wall(f.Resolved)
	for _, name := range slices.Sorted(maps.Keys(f.Topics)) {
		s.Topics = append(s.Topics, Topic{Name: name, Partitions: f.Topics[name], Resolved: p.Resolved})
	}
	if h := m.history; h != nil {
		p.Headroom = seconds(h.Headroom)
		at := f.At()
		if !h.Newest.IsZero() && at != (source.Segment{}) {
			p.Newest = source.SegmentAt(h.Newest).String()
			p.Behind = seconds(max(0, h.Newest.Sub(at.Time())))
		}
	}
}

func (m *Monitor) allLeases(s *Status, state *offsets.State, now time.Time) {
	n := 0
	if state != nil {
		n = len(state.Cursors)
	}
	for p := range int32(n) {
		l := Lease{Lease: p, Owner: state.Owners[p], State: "unused"}
		if l.Owner != "" {
			l.State = "elsewhere"
		}
		if c := state.Cursors[p]; c != nil {
			l.Events, l.Committed = c.Counts.Read, known(c.Time)
			if l.Frontier = c.Over(state.Frontier); !l.Frontier {
				l.Segment, l.Done, l.Shards = c.Segment.String(), c.Done, map[string]string{}
				for shard, at := range c.Shards {
					l.Shards[shard] = at.String()
				}
			}
		}
		if own := m.leases[p]; own != nil {
			m.own(&l, own, now)
			if l.Event != nil && (s.Position.Event == nil || l.Event.After(*s.Position.Event)) {
				s.Position.Event = l.Event
			}
		}
		s.Leases = append(s.Leases, l)
	}
}

func (m *Monitor) own(l *Lease, own *lease, now time.Time) {
	l.Here, l.Errors, l.Error, l.Event = true, own.errors, own.err, known(own.last)
	if !own.commit.IsZero() {
		l.Committed = known(own.commit)
	}
	switch own.activity {
	case bridge.Waiting:
		l.State = "waiting"
		return
	case bridge.Drained:
		l.State = "drained"
		if own.errors == 0 {
			return
		}
	default:
		l.State = "working"
	}
	l.Working = now.Sub(own.since).Seconds()
	if now.Sub(own.since) > m.watchdog {
		l.State = "stuck"
	}
}

// lag splits how late the newest data is: what the service did, which shows where an open segment was read to its end,
// and what we did. A lease that works is late by the age of what it was last known to have nothing before. Of one that has
// come and committed nothing yet, or can't look at the feed, that is not known: then it is not said that nothing is late.
//
// Where all of the current segment is delivered, what is in the newest one waits for the service to finalize those before.
func (m *Monitor) lag(s *Status, now time.Time) {
	if m.publish != nil {
		s.Lag.Azure = seconds(*m.publish)
	}
	if l := m.leases[0]; l != nil && l.activity == bridge.Drained && s.Position.Behind != nil && *s.Position.Behind > 0 {
		if held := now.Sub(m.history.Newest).Seconds(); s.Lag.Azure == nil || held > *s.Lag.Azure {
			s.Lag.Azure = &held
		}
	}
	unknown := false
	for _, l := range m.leases {
		if l.activity == bridge.Drained && l.errors > 0 {
			unknown = true // it can't look whether more has come
			continue
		}
		var late time.Duration
		if l.activity == bridge.Working {
			at := l.caught
			if !l.last.IsZero() && m.publish != nil && l.last.Add(*m.publish).After(at) {
				at = l.last.Add(*m.publish)
			} else if l.last.After(at) {
				at = l.last
			}
			if at.IsZero() {
				unknown = true // it has come, and committed nothing yet
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

func (m *Monitor) reasons(s *Status, connected bool) {
	s.Reasons = []Reason{}
	add := func(code string, lease *int32, format string, args ...any) {
		s.Reasons = append(s.Reasons, Reason{code, lease, fmt.Sprintf(format, args...)})
	}
	last := func(p int32) string {
		for _, e := range s.Errors {
			if e.Lease == p {
				return ": " + e.Error
			}
		}
		return ""
	}
	switch {
	case m.draining:
		add("draining", nil, "the instance is stopping")
	case !connected:
		why := last(-1)
		if why == "" {
			why = ": the brokers have not answered yet"
		}
		add("starting", nil, "the bridge has not started yet%s", why)
	case !m.member:
		add("no_member", nil, "the instance is not a member of the group%s", last(-1))
	}
	for _, l := range s.Leases {
		if l.State != "stuck" {
			continue
		}
		why := ""
		if l.Error != "" {
			why = ": " + l.Error
		}
		text := "lease %d has had work for %s without a commit%s"
		if m.leases[l.Lease].activity == bridge.Drained {
			text = "lease %d can't see for %s whether there is more%s"
		}
		add("stuck", &l.Lease, text, l.Lease, time.Duration(l.Working*float64(time.Second)).Round(time.Second), why)
	}
}

// wall returns the time of "<ns>.<10 digits>".
func wall(updated string) *time.Time {
	text, _, _ := strings.Cut(updated, ".")
	ns, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return nil
	}
	return known(time.Unix(0, ns))
}

func known(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

func seconds(d time.Duration) *float64 {
	s := d.Seconds()
	return &s
}
