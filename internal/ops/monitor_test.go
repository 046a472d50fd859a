package ops

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/sr"

	"blobfeed/bridge"
	"blobfeed/envelope"
	"blobfeed/internal/history"
	"blobfeed/offsets"
	"blobfeed/source"
)

var (
	start   = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	segment = source.SegmentAt(start.Add(-time.Hour))
)

// watched is an engine that knows what it is told.
type watched struct{ state *offsets.State }

func (w *watched) State() *offsets.State { return w.state }

// watching returns a monitor whose clock stands until the test moves it.
func watching(t *testing.T) (m *Monitor, engine *watched, clock *time.Time) {
	t.Helper()
	now := start
	m = NewMonitor("test", "feed", Info{Instance: "one", Version: "v1", Topic: "changes", DeadLetter: "test.dlq"},
		2*time.Minute, func() time.Time { return now })
	engine = &watched{}
	m.Watch(engine)
	return m, engine, &now
}

func state(cursors ...*offsets.Cursor) *offsets.State {
	return &offsets.State{
		Frontier: &offsets.Frontier{
			Completed: source.SegmentAt(segment.Time().Add(-time.Hour)),
			Current:   segment,
			Resolved:  "1769860800000000000.0000000000",
			Topics:    map[string]int32{"changes": 6},
			Gaps:      1,
		},
		Cursors: cursors, Owners: make([]string, len(cursors)),
	}
}

func codes(m *Monitor) string {
	var cs []string
	for _, r := range m.Snapshot().Reasons {
		cs = append(cs, r.Code)
	}
	return strings.Join(cs, " ")
}

func TestReadiness(t *testing.T) {
	m, engine, now := watching(t)
	expect := func(when, want string) {
		t.Helper()
		if got := codes(m); got != want || m.Snapshot().Ready != (want == "") {
			t.Errorf("%s: unready for %q, want %q", when, got, want)
		}
	}
	expect("at first", "starting")
	m.Failed(-1, errors.New("no route to host"))
	if r := m.Snapshot().Reasons[0]; r.Detail != "the bridge has not started yet: no route to host" {
		t.Errorf("the reason is %q", r.Detail)
	}
	engine.state = state(nil, nil, nil)
	expect("when the brokers have answered", "no_member")
	m.Leased(bridge.LeasesAssigned, nil)
	expect("as a member without leases", "")
	m.Leased(bridge.LeasesAssigned, []int32{0, 2})
	*now = now.Add(2 * time.Minute)
	expect("at work for as long as it may", "")
	*now = now.Add(time.Second)
	expect("at work for too long", "stuck stuck")
	m.Active(0, bridge.Waiting)
	m.Failed(2, errors.New("the blob is damaged"))
	expect("when one waits", "stuck")
	if r := m.Snapshot().Reasons[0]; *r.Lease != 2 || !strings.Contains(r.Detail, "2m1s") ||
		!strings.Contains(r.Detail, "the blob is damaged") {
		t.Errorf("the reason is %+v", r)
	}
	m.Committed(bridge.Commit{Lease: 2, Read: 1})
	expect("after a commit", "")
	*now = now.Add(time.Hour)
	m.Active(0, bridge.Working)
	m.Active(2, bridge.Drained)
	expect("when it wakes up", "")
	m.Active(0, bridge.Waiting)
	*now = now.Add(time.Hour)
	m.Failed(2, errors.New("no such host"))
	*now = now.Add(2 * time.Minute)
	expect("when one that has everything can't look for more", "")
	*now = now.Add(time.Second)
	m.Failed(2, errors.New("no such host"))
	expect("for long", "stuck")
	if r := m.Snapshot().Reasons[0]; *r.Lease != 2 ||
		r.Detail != "lease 2 can't see for 2m1s whether there is more: no such host" {
		t.Errorf("the reason is %+v", r)
	}
	m.Active(2, bridge.Drained)
	expect("when it can", "")
	m.Leased(bridge.LeasesReleased, []int32{2})
	expect("with fewer leases", "")
	m.Leased(bridge.LeasesLost, []int32{0})
	expect("when the group has let it go", "no_member")
	m.Drain()
	expect("at the end", "draining")
}

// A lease that makes another attempt, and another, is as stuck as one that hangs.
func TestAttemptsAreNoProgress(t *testing.T) {
	m, engine, now := watching(t)
	engine.state = state(nil)
	m.Leased(bridge.LeasesAssigned, []int32{0})
	for range 5 {
		*now = now.Add(time.Minute)
		m.Failed(0, errors.New("refused"))
		m.Active(0, bridge.Working)
	}
	if got := codes(m); got != "stuck" {
		t.Errorf("unready for %q", got)
	}
	if l := m.Snapshot().Leases[0]; l.Errors != 5 || l.State != "stuck" || l.Working != 300 {
		t.Errorf("%+v", l)
	}
}

func TestLag(t *testing.T) {
	m, engine, now := watching(t)
	engine.state = state(nil)
	lag := func() string {
		text := func(s *float64) string {
			if s == nil {
				return "unknown"
			}
			return fmt.Sprint(*s)
		}
		l := m.Snapshot().Lag
		return text(l.Azure) + " " + text(l.Bridge)
	}
	expect := func(when, want string) {
		t.Helper()
		if got := lag(); got != want {
			t.Errorf("%s: azure, bridge = %s, want %s", when, got, want)
		}
	}
	expect("without leases", "unknown unknown")
	m.Leased(bridge.LeasesAssigned, []int32{0})
	expect("before the first commit", "unknown unknown")
	m.Committed(bridge.Commit{Lease: 0, Seen: now.Add(-3 * time.Hour)})
	expect("in catch-up", "unknown 10800")
	// The service published at -10 s what had happened at -100 s, and we have it.
	m.Committed(
		bridge.Commit{Lease: 0, Seen: now.Add(-100 * time.Second), Published: now.Add(-10 * time.Second), Drained: true},
	)
	expect("at work, near the end", "90 10")
	m.Active(0, bridge.Drained)
	expect("at the end", "90 0")
	*now = now.Add(time.Hour)
	expect("an hour later, idle", "90 0")
	m.Active(0, bridge.Working)
	*now = now.Add(5 * time.Second)
	expect("at work again: nothing was left 5 s ago", "90 5")
	m.Active(0, bridge.Waiting)
	expect("waiting for others", "90 0")
	m.Leased(bridge.LeasesAssigned, []int32{1})
	expect("when another has come, which may be late", "90 unknown")
	m.Active(0, bridge.Working)
	expect("but one is known to be late", "90 5")
	m.Active(0, bridge.Waiting)
	m.Committed(bridge.Commit{Lease: 1, Seen: now.Add(-3 * time.Hour)})
	expect("when it has committed", "90 10710")
	m.Active(1, bridge.Waiting)
	expect("when both wait", "90 0")
	m.Active(0, bridge.Drained)
	m.Failed(0, errors.New("refused"))
	expect("when the feed can't be looked at", "90 unknown")
	m.Active(0, bridge.Drained)
	expect("when it was looked at", "90 0")
}

// At the end of a finished feed, a lease waits and looks for more now and then. If a look fails, nothing is known to be
// late.
func TestLagOfAFinishedFeed(t *testing.T) {
	m, engine, now := watching(t)
	engine.state = state(nil)
	m.Leased(bridge.LeasesAssigned, []int32{0})
	m.Committed(bridge.Commit{Lease: 0, Seen: now.Add(-24 * 365 * time.Hour)})
	m.Active(0, bridge.Waiting)
	m.Active(0, bridge.Working)
	m.Failed(0, errors.New("the directory is empty"))
	*now = now.Add(time.Minute)
	if late := m.Snapshot().Lag.Bridge; late != nil {
		t.Errorf("%v s late although the feed cannot be read", *late)
	}
	m.Active(0, bridge.Waiting)
	if late := m.Snapshot().Lag.Bridge; late == nil || *late != 0 {
		t.Errorf("when it was looked at: %v", late)
	}
}

func TestErrorsAreFewAndCounted(t *testing.T) {
	m, _, now := watching(t)
	for i := range 30 {
		*now = now.Add(time.Second)
		m.Failed(int32(i%3), fmt.Errorf("trouble %d", i%15))
	}
	s := m.Snapshot()
	if len(s.Errors) != errorsKept || s.Errors[0].Error != "trouble 14" || s.SinceStart.Errors["other"] != 30 {
		t.Errorf("%d errors, newest %+v, %v", len(s.Errors), s.Errors[0], s.SinceStart.Errors)
	}
	m.Failed(s.Errors[3].Lease, errors.New(s.Errors[3].Error))
	again := m.Snapshot().Errors
	if again[0].Error != s.Errors[3].Error || again[0].Count != s.Errors[3].Count+1 || len(again) != errorsKept {
		t.Errorf("again: %+v of %d", again[0], len(again))
	}
}

func TestClass(t *testing.T) {
	for want, err := range map[string]error{
		"fenced": fmt.Errorf("committing: %w (%w)", offsets.ErrFenced, kerr.ProducerFenced),
		"damage": &source.DamageError{Blob: "b"},
		"gap":    &history.GapError{},
		"event":  &bridge.EventError{Err: errors.New("no time")},
		"kafka":  fmt.Errorf("writing: %w", kerr.TopicAuthorizationFailed),
		"feed":   fmt.Errorf("reading x: %w", source.ErrNotFound),
		"other":  errors.New("?"),

		"network":  fmt.Errorf("registering the schema of x: %w", &url.Error{Op: "Post", URL: "http://registry", Err: syscall.ECONNREFUSED}),
		"registry": fmt.Errorf("registering the schema of x: %w", errors.Join(syscall.ECONNREFUSED, &sr.ResponseError{StatusCode: 401})),
	} {
		if got := class(err); got != want {
			t.Errorf("%v is of class %s, want %s", err, got, want)
		}
	}
}

func TestRate(t *testing.T) {
	var r rate
	at := start
	for range 120 {
		r.add(at, 10, 1000)
		r.add(at, 10, 1000)
		at = at.Add(time.Second)
	}
	if events, bytes := r.per(at, start); events != 20 || bytes != 2000 {
		t.Errorf("%v events/s, %v bytes/s", events, bytes)
	}
	if events, _ := r.per(at.Add(15*time.Second), start); events != 10 {
		t.Errorf("after half a window without: %v events/s", events)
	}
	if events, _ := r.per(at.Add(time.Hour), start); events != 0 {
		t.Errorf("after an hour: %v events/s", events)
	}
}

// What is in the next segment waits until the service finalizes the current one, all of which is delivered: that is its
// delay.
func TestLagBeforeTheBarrier(t *testing.T) {
	m, engine, clock := watching(t)
	engine.state = state(nil)
	m.Leased(bridge.LeasesAssigned, []int32{0})
	next := segment.Time().Add(time.Hour)
	*clock = next.Add(3 * time.Minute)
	for _, c := range []struct {
		what     string
		activity bridge.Activity
		newest   time.Time
		want     *float64
	}{
		{"the current segment is the newest", bridge.Drained, segment.Time(), nil},
		{"a newer one is there", bridge.Drained, next, seconds(3 * time.Minute)},
		{"but the current one is not delivered", bridge.Working, next, nil},
		{"or other leases are waited for", bridge.Waiting, next, nil},
	} {
		m.History(bridge.History{Newest: c.newest})
		m.Active(0, c.activity)
		if got := m.Snapshot().Lag.Azure; (got == nil) != (c.want == nil) || got != nil && *got != *c.want {
			t.Errorf("%s: %v, want %v", c.what, got, c.want)
		}
	}
}

func TestSnapshotOfLeases(t *testing.T) {
	m, engine, _ := watching(t)
	own := &offsets.Cursor{
		Segment: segment,
		Shards:  map[string]source.ShardPosition{"01": {Chunk: 2, Offset: 77}},
		Counts:  offsets.Counts{Read: 5},
	}
	over := &offsets.Cursor{Segment: source.SegmentAt(segment.Time().Add(-24 * time.Hour)), Shards: own.Shards}
	engine.state = state(nil, own, over)
	engine.state.Owners = []string{"", "one", "two"}
	m.Leased(bridge.LeasesAssigned, []int32{1})
	last := start.Add(-time.Minute)
	m.Committed(bridge.Commit{Lease: 1, Read: 5, Emitted: 4, Filtered: 1, Unknown: 1, Seen: last, Bytes: 99})
	m.Completed(bridge.Completion{Segment: segment, Resolved: envelope.Timestamp{Wall: 1}, Markers: 6})
	m.History(bridge.History{Headroom: 48 * time.Hour, Newest: segment.Time().Add(2 * time.Hour)})
	s := m.Snapshot()
	if len(s.Leases) != 3 || s.Leases[0].State != "unused" || s.Leases[2].State != "elsewhere" || s.Leases[2].Here {
		t.Errorf("leases %+v", s.Leases)
	}
	if l := s.Leases[2]; !l.Frontier || l.Segment != "" || l.Shards != nil || s.Leases[1].Frontier {
		t.Errorf("behind the frontier: %+v", l)
	}
	if l := s.Leases[1]; !l.Here || l.State != "working" || l.Shards["01"] != "00002/77" || l.Events != 5 ||
		!l.Event.Equal(last) {
		t.Errorf("own lease %+v", l)
	}
	if p := s.Position; p.Current != segment.String() || !p.Resolved.Equal(start) || *p.Headroom != 172800 ||
		*p.Behind != 7200 ||
		!p.Event.Equal(last) {
		t.Errorf("position %+v", p)
	}
	m.History(bridge.History{Newest: segment.Time().Add(-time.Hour)})
	if p := m.Snapshot().Position; p.Newest != segment.String() || *p.Behind != 0 {
		t.Errorf("a look from before the current segment: %+v", p)
	}
	if len(s.Topics) != 1 || s.Topics[0].Name != "changes" || s.Topics[0].Partitions != 6 {
		t.Errorf("topics %+v", s.Topics)
	}
	if n := s.SinceStart; n.Events != 5 || n.Records != 4 || n.Filtered != 1 || n.Unknown != 1 || n.Bytes != 99 || n.Segments != 1 ||
		n.Markers != 6 ||
		n.Leases["assigned"] != 1 {
		t.Errorf("totals %+v", n)
	}
}
