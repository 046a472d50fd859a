package ops

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"blobfeed/bridge"
	"blobfeed/internal/crash"
	"blobfeed/internal/history"
	"blobfeed/internal/plain"
	"blobfeed/internal/status"
	"blobfeed/offsets"
)

// Engine is the watched bridge.
type Engine interface {
	// State is what all instances know of each other; nil while that is not known.
	State() *offsets.State
}

// Info describes the instance. It does not change.
type Info struct {
	Instance   string `json:"instance"`
	Version    string `json:"version"`
	Topic      string `json:"topic"`
	DeadLetter string `json:"dead_letter_topic,omitempty"`
	Delivery   string `json:"delivery"`
	Memory     int64  `json:"memory_limit_bytes"` // 0: none
	Replay     bool   `json:"-"`

	Example *Example `json:"example,omitempty"`
}

// Monitor keeps what the engine reports. It implements bridge.Observer.
type Monitor struct {
	name     string // of the bridge
	feed     string
	info     Info
	watchdog time.Duration // a lease that works for longer without a commit is stuck
	now      func() time.Time
	caught   crash.Handler // of panics in metrics; nil: they end the process
	started  time.Time
	observed *observed

	mu       sync.Mutex
	engine   Engine
	down     status.Problem // why no engine works until the next Watch; none: one does
	draining bool
	member   bool
	joined   bool   // was a member once
	awaits   string // whom the group waits for, before
	leases   map[int32]*lease
	counts   Counts
	history  *reach
	publish  *time.Duration // how long Azure took to publish what came last
	begun    time.Time      // when the first transaction was
	rate     rate
	errors   []status.Failure // newest last, at most errorsKept
	trouble  offsets.Failure  // of the instance; zero when it is over
	kafka    contact
	storage  contact
	samples  samples
	written  map[partition]written
	recent   []Record       // committed, the newest first
	lost     []Lost         // the last ones
	gone     status.Problem // of a topic that was deleted; none: all are there
	older    status.Problem // of a copy of the feed that lacks the position; none: it has it

	ribbon ribbon // has a lock of its own
}

// lease is one that this instance holds.
type lease struct {
	activity bridge.Activity
	since    time.Time // working without a commit, or drained and failing
	idle     time.Time // when it had nothing to do, last: lease 0 has looked then for what comes next
	caught   time.Time // when everything that was in the feed was delivered, last
	last     time.Time // latest event time committed
	commit   time.Time
	errors   int // in a row
	err      *offsets.Failure
	failing  *offsets.Failure // nil when it is over
	fenced   bool             // failing is of the lease itself, so a commit ends it
}

// committed takes note of a commit.
func (own *lease) committed(now time.Time) {
	own.commit, own.since, own.errors, own.err = now, now, 0, nil
	if own.failing != nil && (own.fenced || now.Sub(own.failing.Time) > lasting) {
		own.failing = nil // else it may be of another shard, which is retried
	}
}

// reach is how far the feed reached at the last look, which was at the position of an epoch.
type reach struct {
	bridge.History
	epoch int64
}

// errorsKept is how many different errors the status shows.
const errorsKept = 10

// NewMonitor returns a monitor of an instance that starts, of the bridge of a name. Now nil is time.Now.
func NewMonitor(name, feed string, info Info, watchdog time.Duration, now func() time.Time) *Monitor {
	if now == nil {
		now = time.Now
	}
	return &Monitor{
		name: name, feed: feed, info: info, watchdog: watchdog, now: now, started: now(), observed: newObserved(),
		leases: map[int32]*lease{}, counts: newCounts(), written: map[partition]written{},
	}
}

// Catch makes the monitor report panics of its metrics to h, before the first scrape.
func (m *Monitor) Catch(h crash.Handler) { m.caught = h }

// Watch sets the engine whose state is shown.
func (m *Monitor) Watch(e Engine) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.engine, m.down = e, status.Problem{}
}

// Gone reports which topic was deleted; a problem without a cause says that none is.
func (m *Monitor) Gone(p status.Problem) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.gone = p
}

// Lacks reports that the feed lacks the position of the bridge; a problem without a cause says that it has it.
func (m *Monitor) Lacks(p status.Problem) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.older = p
}

// Joins reports which other members the group has, which the instance joins.
func (m *Monitor) Joins(others []string, session time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.awaits = ""; len(others) > 0 {
		m.awaits = " and waits for " + plain.Line(plain.Clip(strings.Join(others, ", "))) +
			": a member that was killed leaves within " + plain.Span(session)
	}
}

// Down reports that the engine has ended with an error, and when another one is to be watched; 0 is never.
func (m *Monitor) Down(err error, again time.Duration) {
	m.Failed(-1, err)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.engine, m.member, m.history, m.trouble = nil, false, nil, offsets.Failure{}
	m.kafka, m.storage = contact{}, contact{}
	clear(m.leases)
	text, do := plain.SplitRemedy(err)
	m.down = status.Problem{Cause: "the bridge has failed", Remedy: plain.Clip(do)}
	if again > 0 {
		m.down.Cause = "the bridge has failed and starts again within " + plain.Span(again)
	}
	m.down.Cause += ": " + plain.Clip(text)
}

// Drain makes the instance unready, because it stops.
func (m *Monitor) Drain() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.draining = true
}

var (
	_ bridge.CommitObserver     = (*Monitor)(nil)
	_ bridge.CompletionObserver = (*Monitor)(nil)
	_ bridge.HistoryObserver    = (*Monitor)(nil)
	_ bridge.FailureObserver    = (*Monitor)(nil)
	_ bridge.LeaseObserver      = (*Monitor)(nil)
	_ bridge.ActivityObserver   = (*Monitor)(nil)

	_ bridge.TransactionObserver = (*Monitor)(nil)
)

// Ended implements bridge.TransactionObserver.
func (m *Monitor) Ended(t bridge.Transaction) {
	for step, s := range map[string]bridge.Span{
		"read": t.Reading, "encode": t.Encoding, "publish": t.Publishing, "commit": t.Committing,
	} {
		m.observed.steps.WithLabelValues(step).Add(max(0, s.Busy.Seconds()))
	}
}

// Committed implements bridge.CommitObserver.
func (m *Monitor) Committed(c bridge.Commit) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	n := &m.counts
	n.Transactions++
	n.Events += c.Read
	n.Records += c.Emitted
	n.Filtered += c.Filtered
	n.Unknown += c.Unknown
	n.DeadLettered += c.Dead
	n.Late += c.Late
	n.Bytes += c.Bytes
	if m.begun.IsZero() {
		m.begun = now.Add(-c.Took)
	}
	m.rate.add(now, c.Read, c.Bytes)
	m.observed.transaction.WithLabelValues().Observe(c.Took.Seconds())
	if c.Drained && !c.Published.IsZero() && !c.Seen.IsZero() {
		publish := max(0, c.Published.Sub(c.Seen))
		m.publish = &publish
		m.observed.latency("publish", publish)
		m.observed.latency("bridge", now.Sub(c.Published))
		m.observed.latency("total", now.Sub(c.Seen))
	}
	m.keep(c)
	l := m.leases[c.Lease]
	if l == nil {
		return
	}
	l.committed(now)
	if c.Seen.After(l.last) {
		l.last = c.Seen
	}
}

// Completed implements bridge.CompletionObserver. It is the owner of lease 0 that completes segments.
func (m *Monitor) Completed(c bridge.Completion) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.counts.Segments++
	m.counts.Markers += c.Markers
	if l := m.leases[0]; l != nil {
		l.committed(m.now())
	}
}

// History implements bridge.HistoryObserver.
func (m *Monitor) History(h bridge.History) {
	state := m.state()
	m.mu.Lock()
	defer m.mu.Unlock()
	if state != nil {
		m.history = &reach{h, state.Epoch}
	}
	m.trouble = offsets.Failure{}
}

// Failed implements bridge.FailureObserver.
func (m *Monitor) Failed(p int32, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if gap, is := errors.AsType[*history.GapError](err); is && gap.Recorded {
		m.loses(gap)
	}
	text, do := plain.SplitRemedy(err)
	met := offsets.Failure{Time: m.now(), Error: plain.Clip(text), Remedy: plain.Clip(do)}
	f := status.Failure{Lease: p, Failure: met, Class: class(err), Count: 1}
	m.counts.Errors[f.Class]++
	i := slices.IndexFunc(m.errors, func(have status.Failure) bool {
		return have.Lease == p && have.Class == f.Class && have.Error == f.Error
	})
	if i >= 0 {
		f.Count += m.errors[i].Count
		m.errors = slices.Delete(m.errors, i, i+1)
	}
	m.errors = append(m.errors, f)
	if len(m.errors) > errorsKept {
		m.errors = slices.Delete(m.errors, 0, 1)
	}
	if p < 0 {
		m.trouble = met
	}
	if l := m.leases[p]; l != nil {
		l.failing, l.fenced = &met, f.Class == "fenced"
		if l.activity == bridge.Drained && l.errors == 0 {
			l.since = met.Time // it can't look for more from now on
		}
		l.errors++
		l.err = &met
	}
}

// Leased implements bridge.LeaseObserver.
func (m *Monitor) Leased(change bridge.LeaseChange, leases []int32) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.member = change != bridge.LeasesLost
	if m.member {
		m.joined, m.trouble = true, offsets.Failure{}
	}
	m.counts.Leases[changes[change]] += len(leases)
	for _, p := range leases {
		if change == bridge.LeasesAssigned {
			m.leases[p] = &lease{activity: bridge.Working, since: m.now()}
			continue
		}
		delete(m.leases, p)
		if p == 0 {
			m.history = nil // the next owner of lease 0 looks
		}
	}
}

// changes names the values of the label event.
var changes = map[bridge.LeaseChange]string{
	bridge.LeasesAssigned: "assigned", bridge.LeasesReleased: "released", bridge.LeasesLost: "lost",
}

// Active implements bridge.ActivityObserver.
func (m *Monitor) Active(p int32, a bridge.Activity) {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.leases[p]
	if l == nil {
		return
	}
	now := m.now()
	if a == bridge.Working && l.activity != a {
		l.since = now // the work is new
	}
	if a == bridge.Drained {
		l.errors, l.err = 0, nil
	}
	if a != bridge.Working { // it has done all that there is to do
		l.idle, l.failing = now, nil
	}
	if a == bridge.Drained || l.activity == bridge.Drained {
		l.caught = now
	}
	l.activity = a
}

// Counts are totals since the start of the process.
type Counts struct {
	Events       int            `json:"events"`
	Records      int            `json:"records"`
	Filtered     int            `json:"filtered"`
	Unknown      int            `json:"unknown"` // of Filtered
	DeadLettered int            `json:"dead_lettered"`
	Late         int            `json:"late"`
	Bytes        int            `json:"bytes"`
	Transactions int            `json:"transactions"`
	Segments     int            `json:"segments"`
	Markers      int            `json:"markers"`
	Errors       map[string]int `json:"errors"` // by class
	Leases       map[string]int `json:"leases"` // by event
}

func newCounts() Counts {
	c := Counts{Errors: map[string]int{}, Leases: map[string]int{}}
	for _, name := range classes { // from 0 on, so that a rate sees the first one
		c.Errors[name] = 0
	}
	for _, name := range changes {
		c.Leases[name] = 0
	}
	return c
}

func (c Counts) clone() Counts {
	c.Errors, c.Leases = maps.Clone(c.Errors), maps.Clone(c.Leases)
	return c
}
