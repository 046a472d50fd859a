package ops

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/bridge"
	"blobfeed/internal/plain"
	"blobfeed/internal/status"
	"blobfeed/offsets"
	"blobfeed/source"
)

// judged fails if the verdict is another than one with this code and this in its text.
func judged(t *testing.T, m *Monitor, when, code, says string) {
	t.Helper()
	if v := m.Snapshot().Verdict; v.Code != code || !strings.Contains(v.Text, says) {
		t.Errorf("%s: %+v, want %s with %q", when, v, code, says)
	}
}

// A lease that was fenced, as by a seek, is well again when it commits. An error of a shard may last beside commits.
func TestCommitEndsAFence(t *testing.T) {
	for _, c := range []struct {
		err   error
		fails bool
	}{{fmt.Errorf("committing: %w", offsets.ErrFenced), false}, {errors.New("no route to host"), true}} {
		m, engine, _ := watching(t)
		engine.state = state(nil, nil)
		m.Leased(bridge.LeasesAssigned, []int32{0, 1})
		m.BrokerAnswered()
		m.Active(0, bridge.Working)
		m.Failed(0, c.err)
		m.Completed(bridge.Completion{})
		if l := m.Snapshot().Leases[0]; l.Failing != c.fails {
			t.Errorf("%v: it is failing after a commit: %t", c.err, l.Failing)
		}
	}
}

// An instance that starts says what it waits for, and why it does not get it.
func TestVerdictAtTheStart(t *testing.T) {
	m, engine, now := watching(t)
	judged(t, m, "at first", status.Starting, "the brokers have not answered yet")
	m.BrokerFailed(errors.New("connection refused"))
	*now = now.Add(7 * time.Second)
	judged(t, m, "without brokers", status.Degraded, "Kafka has not answered for 7s: connection refused")
	m.BrokerAnswered()
	judged(t, m, "when they answer", status.Starting, "the brokers have not answered yet")
	m.Failed(-1, errors.New("there is no change feed"))
	*now = now.Add(silence + time.Second)
	judged(t, m, "when the feed is missing, and nobody asks the brokers", status.Degraded, "there is no change feed")
	m.BrokerFailed(errors.New("connection refused"))
	judged(t, m, "without brokers", status.Degraded, "Kafka has not answered for 11s: connection refused")
	if s := m.Snapshot(); len(s.Problems) != 1 { // that it has not started, or is no member, is because of that
		t.Errorf("%+v", s.Problems)
	}
	m.BrokerAnswered()
	m.History(bridge.History{}) // the feed is there
	engine.state = state(nil, nil)
	judged(t, m, "outside of the group", status.Starting, "the instance joins the group")
	m.Joins([]string{"two", "three"}, 45*time.Second)
	judged(t, m, "beside members that may be dead", status.Starting, "joins the group and waits for two, three: a "+
		"member that was killed leaves within 45s")
	m.Joins(nil, 45*time.Second)
	judged(t, m, "when they are gone", status.Starting, "the instance joins the group")
	m.Leased(bridge.LeasesAssigned, []int32{0, 1})
	judged(t, m, "as a member", status.Starting, "the feed is looked at for the first time")
	m.Active(0, bridge.Waiting)
	judged(t, m, "after a look at the feed", status.UpToDate, "")
	m.Leased(bridge.LeasesLost, []int32{0, 1})
	judged(t, m, "when it is no member any more", status.Degraded, "not a member of the group")
	m.Leased(bridge.LeasesAssigned, []int32{0, 1})
	judged(t, m, "as a member again, of a feed that has grown", status.Starting, "the feed is looked at")
	m.Committed(bridge.Commit{Lease: 0})
	judged(t, m, "when that is delivered", status.UpToDate, "")
	m.Leased(bridge.LeasesLost, []int32{0, 1})
	m.Drain()
	judged(t, m, "at the end", status.Degraded, "the instance is stopping")
}

// A place in the future is degraded at once. Whether the feed has one in the past is known when the owner of lease 0
// has looked there, not before, and not because it has looked elsewhere. Until then nothing is up to date. The minute
// before the place does not name a segment, so it is not the newest one.
func TestVerdictAfterASeek(t *testing.T) {
	const years = 4 * 365 * 24 * time.Hour
	for to, before := range map[time.Duration]string{years: status.Degraded, -time.Hour: status.Starting} {
		m, engine, now := watching(t)
		place := source.SegmentAt(now.Add(to))
		moved := state(nil, nil)
		moved.Frontier.Completed, moved.Frontier.Current = source.Before(place), source.Segment{}
		moved.Frontier.Seek, moved.Frontier.Time = &offsets.Seek{To: place.String()}, now.Add(-time.Hour)
		engine.state = moved
		m.BrokerAnswered()
		judged(t, m, "outside of the group", before, map[string]string{status.Starting: "joins the group"}[before])
		m.Leased(bridge.LeasesAssigned, nil)
		judged(t, m, place.String()+", where another instance looks", status.Degraded, "bridge seek has moved")
		m.Leased(bridge.LeasesAssigned, []int32{0, 1})
		judged(t, m, place.String()+", at first", before, "bridge seek has moved the bridge")
		m.History(bridge.History{Newest: now.Add(years + time.Hour)})
		judged(t, m, place.String()+", with a later segment", before, "bridge seek has moved the bridge")
		m.Active(0, bridge.Drained)
		moved.Frontier.Time = now.Add(time.Second)
		m.Active(0, bridge.Working)
		judged(t, m, place.String()+", at another place before", before, "bridge seek has moved the bridge")
		*now = now.Add(time.Second)
		m.Active(0, bridge.Waiting)
		m.Active(1, bridge.Waiting)
		judged(t, m, place.String()+", after a look", status.Degraded, "bridge seek has moved the bridge")
		if late := m.Snapshot().Lag.Bridge; late != nil {
			t.Errorf("%s: nothing is delivered there, and nothing is late: %v", place, *late)
		}
		m.Active(0, bridge.Working)
		judged(t, m, place.String()+", at the next look", status.Degraded, "bridge seek has moved the bridge")
		m.History(bridge.History{Headroom: 4 * time.Hour, Newest: moved.Frontier.Completed.Time()})
		if p := m.Snapshot().Position; p.Newest != "" || p.Headroom != nil {
			t.Errorf("%s: newest segment %s, headroom %v", place, p.Newest, p.Headroom)
		}
		m.Lists(new(listing))
		if s := m.Segments(t.Context()); len(s.Begins) > 0 {
			t.Errorf("%s: the ribbon shows segments at %v", place, s.Begins)
		}
		moved.Frontier.Seek, moved.Frontier.Start = nil, fmt.Sprintf("%d.0000000000", place.Time().UnixNano())
		if p := m.Snapshot().Position; to > 0 && (p.Beyond == "" || p.Newest != "" || p.Headroom != nil) {
			t.Errorf("%s, by BRIDGE_START: %+v", place, p)
		}
	}
}

// A copy of the feed that lacks the position is degraded, and the position is not shown as the newest segment.
func TestVerdictOfAnOlderCopy(t *testing.T) {
	m, engine, _ := watching(t)
	engine.state = state(nil, nil)
	engine.state.Frontier.Current, engine.state.Frontier.Completed = source.Segment{}, segment
	m.BrokerAnswered()
	m.Leased(bridge.LeasesAssigned, []int32{0, 1})
	m.History(bridge.History{Newest: segment.Time()})
	m.Lists(new(listing))
	why := status.OlderCopy(engine.state.Frontier)
	m.Lacks(why)
	s := m.Snapshot()
	want := status.Verdict{Code: status.Degraded, Text: "degraded: " + why.Cause, Remedy: why.Remedy}
	if begins := m.Segments(t.Context()).Begins; s.Verdict != want || s.Position.Newest != "" || len(begins) > 0 {
		t.Errorf("%+v, newest segment %q, tiles at %v", s.Verdict, s.Position.Newest, begins)
	}
	m.Lacks(status.Problem{})
	m.Active(0, bridge.Waiting)
	judged(t, m, "when the copy is complete", status.UpToDate, "")
}

// Later segments wait for one that the service leaves open: the instance says so as bridge status does.
func TestVerdictOfAnOpenSegment(t *testing.T) {
	m, engine, now := watching(t)
	open := state(nil, nil)
	open.Frontier.OpenSince = now.Add(-3 * time.Hour)
	engine.state = open
	m.BrokerAnswered()
	m.History(bridge.History{})
	m.Leased(bridge.LeasesAssigned, []int32{0, 1})
	want := status.Of("b", open, status.Group{State: "Stable", Members: []status.Member{{}}}, *now).Verdict
	if got := m.Snapshot().Verdict; got.Code != status.Degraded || got != want {
		t.Errorf("%+v, and bridge status says %+v", got, want)
	}
}

// An error shows at once, and is over when the lease has done all that there is to do.
func TestVerdictOfAFailingLease(t *testing.T) {
	m, engine, now := watching(t)
	engine.state = state(nil, &offsets.Cursor{Error: &offsets.Failure{Error: "damaged"}, Failing: true}, nil)
	engine.state.Owners[1] = "two"
	m.Leased(bridge.LeasesAssigned, []int32{0})
	judged(t, m, "of another instance", status.Degraded, "lease 1 of instance two: damaged")
	engine.state.Cursors[1].Failing = false
	m.Active(0, bridge.Waiting)
	judged(t, m, "when it is over there", status.UpToDate, "")
	for over, end := range map[string]func(){
		"drained": func() { m.Active(0, bridge.Drained) },
		"waiting": func() { m.Active(0, bridge.Waiting) },
		"a commit, long after": func() {
			*now = now.Add(lasting + time.Second)
			m.Committed(bridge.Commit{Lease: 0})
		},
	} {
		m.Active(0, bridge.Working)
		m.Failed(0, errors.New("no route"))
		judged(t, m, "at once", status.Degraded, "lease 0: no route")
		m.Committed(bridge.Commit{Lease: 0})
		judged(t, m, "after a commit, which may be of another shard", status.Degraded, "lease 0: no route")
		end()
		judged(t, m, over, status.UpToDate, "")
	}
	m.Active(0, bridge.Waiting)
	m.Failed(-1, errors.New("reading meta/segments.json: timeout"))
	judged(t, m, "of the instance", status.Degraded, "meta/segments.json")
	m.History(bridge.History{})
	judged(t, m, "when the feed is read", status.UpToDate, "")
	m.Failed(-1, errors.New("once"))
	*now = now.Add(lasting)
	judged(t, m, "when it does not come again", status.UpToDate, "")
}

// The bridge says that Kafka is away, though nothing has to be delivered: the clients know it first.
func TestVerdictWithoutKafka(t *testing.T) {
	m, engine, now := watching(t)
	engine.state = state(nil)
	m.Leased(bridge.LeasesAssigned, []int32{0})
	m.Active(0, bridge.Drained)
	c := newClients(prometheus.NewRegistry(), m)
	cl, err := kgo.NewClient(kgo.SeedBrokers("127.0.0.1:1"))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	c.OnNewClient(cl)
	read := func() { c.OnBrokerRead(kgo.BrokerMetadata{}, 1, 10, 0, 0, nil) }
	refuse := func(err error) { c.OnBrokerConnect(kgo.BrokerMetadata{}, 0, nil, err) }
	read()
	refuse(&net.OpError{Op: "dial", Err: errors.New("refused")})
	judged(t, m, "one broker of several", status.UpToDate, "")
	*now = now.Add(another + time.Second)
	judged(t, m, "the others do not answer either", status.Degraded, "Kafka has not answered for 3s: dial: refused")
	read()
	judged(t, m, "when one answers", status.UpToDate, "")
	refuse(context.Canceled)
	*now = now.Add(silence)
	judged(t, m, "a connection that we gave up", status.UpToDate, "")
	*now = now.Add(time.Second)
	judged(t, m, "silence", status.Degraded, "Kafka has not answered for 11s")
	*now = now.Add(3 * time.Second)
	refuse(&net.OpError{Op: "read", Err: os.ErrDeadlineExceeded})
	judged(t, m, "the first request that fails", status.Degraded, "Kafka has not answered for 14s: read: i/o timeout")
	read()
	m.Leased(bridge.LeasesLost, []int32{0})
	judged(t, m, "out of the group", status.Degraded, "not a member of the group")
	*now = now.Add(another + time.Second)
	judged(t, m, "and without an answer", status.Degraded, "Kafka has not answered for 3s")
	if s := m.Snapshot(); len(s.Problems) != 1 { // that it is no member is because of that
		t.Errorf("%+v", s.Problems)
	}
}

// The verdict on a catch-up has the speed that the page shows. If other instances work, too, it has that of all.
func TestOneSpeed(t *testing.T) {
	m, engine, now := watching(t)
	cursor := &offsets.Cursor{Segment: segment, Ahead: 50, Listed: 100, Counts: offsets.Counts{Read: 9000}}
	engine.state = state(cursor, nil)
	engine.state.Frontier.CatchUp = &offsets.CatchUp{Done: 1, Left: 4, From: 0, Since: *now}
	m.Leased(bridge.LeasesAssigned, []int32{0, 1})
	*now = now.Add(100 * time.Second)
	engine.state.Cursors[0].Time = *now
	m.Committed(bridge.Commit{Lease: 0, Read: 3000, Took: 20 * time.Second})
	if s := m.Snapshot(); s.Throughput.Events != 150 || !strings.Contains(s.Verdict.Text, ", 150 events/s") {
		t.Errorf("alone: %v events/s, %q", s.Throughput.Events, s.Verdict.Text)
	}
	engine.state.Cursors[1], engine.state.Owners[1] = &offsets.Cursor{Segment: segment}, "two"
	m.Leased(bridge.LeasesReleased, []int32{1})
	if s := m.Snapshot(); !strings.Contains(s.Verdict.Text, ", 90 events/s") {
		t.Errorf("with another instance: %q", s.Verdict.Text)
	}
}

// So it does of the storage service, before the requests are given up. What is not there is an answer.
func TestVerdictWithoutStorage(t *testing.T) {
	m, engine, now := watching(t)
	engine.state = state(nil)
	m.Leased(bridge.LeasesAssigned, []int32{0})
	m.Active(0, bridge.Waiting)
	request := func(statuses ...int) {
		for _, s := range statuses {
			m.Requested("read", s, time.Millisecond, 0, nil)
		}
	}
	request(404, 503, 200, 503)
	judged(t, m, "one failure", status.UpToDate, "")
	*now = now.Add(3 * time.Second)
	request(503)
	judged(t, m, "and another", status.Degraded, "the storage service has answered 503 Service Unavailable for 3s")
	request(0)
	judged(t, m, "without an answer", status.Degraded, "the storage service has not answered for 3s")
	request(206)
	judged(t, m, "when it answers", status.UpToDate, "")
	request(403, 403)
	judged(t, m, "when it refuses", status.Degraded, "403 Forbidden")
	*now = now.Add(forgotten)
	judged(t, m, "when nothing is asked any more", status.UpToDate, "")
	request(206)
	*now = now.Add(45 * time.Second)
	m.Requested("read", 0, 30*time.Second, 0, nil)
	*now = now.Add(5 * time.Second)
	request(0)
	judged(t, m, "when requests hang", status.Degraded, "the storage service has not answered for 35s")
}

// Storage that cannot be reached is one problem, with its cause and what to do about it, and not two. What else fails
// stays another one.
func TestStorageCannotBeReached(t *testing.T) {
	m, engine, now := watching(t)
	failure := func(server string) error {
		dns := &net.DNSError{Err: "no such host", Name: "acct", Server: server, IsNotFound: true}
		return fmt.Errorf("reading meta/segments.json: %w", &url.Error{Op: "Get", URL: "https://acct/" + server,
			Err: &net.OpError{Op: "dial", Net: "tcp", Err: dns}})
	}
	for range 2 {
		*now = now.Add(3 * time.Second)
		m.Requested("read", 0, 3*time.Second, 0, failure("10.0.0.1:53"))
	}
	m.Failed(-1, plain.WithRemedy(failure("10.0.0.1:53"), "check the name of the account"))
	want := status.Problem{
		Cause:  "the storage service has not answered for 6s: lookup acct on 10.0.0.1:53: no such host",
		Remedy: "check the name of the account",
	}
	s := m.Snapshot() // before its start
	if len(s.Problems) != 1 || s.Problems[0] != want || s.Verdict.Text != "degraded: "+want.Cause {
		t.Errorf("%+v, %+v", s.Verdict, s.Problems)
	}
	engine.state = state(nil)
	m.Leased(bridge.LeasesAssigned, []int32{0})
	m.Failed(0, failure("10.0.0.1:53"))
	if s = m.Snapshot(); len(s.Problems) != 1 || s.Problems[0].Cause != want.Cause {
		t.Errorf("as a member: %+v", s.Problems)
	}
	m.Failed(0, errors.New("topic changes: not authorized"))
	if s = m.Snapshot(); len(s.Problems) != 2 || !strings.Contains(s.Problems[1].Cause, "authorized") {
		t.Errorf("with another failure: %+v", s.Problems)
	}
}

// That the storage service is away is reported once: at the second failure in a row, or at the first that took long. A
// rejection is not, since nothing retries it in silence.
func TestStorageIsAway(t *testing.T) {
	m, _, _ := watching(t)
	for _, c := range []struct {
		status int
		took   time.Duration
		want   string
	}{
		{0, 0, ""}, {0, 0, "has not answered"}, {0, 0, ""}, {206, 0, ""},
		{0, 10 * time.Second, "has not answered"}, {206, 0, ""},
		{503, 0, ""}, {500, 0, "has answered 500 Internal Server Error"}, {200, 0, ""},
		{403, 0, ""}, {403, 0, ""}, {403, 0, ""},
	} {
		if got := m.Requested("read", c.status, c.took, 0, nil); got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
}

// A scrape has the verdict and the progress, or no progress.
func TestVerdictIsMeasured(t *testing.T) {
	m, metrics, _ := busy(t)
	m.Active(0, bridge.Waiting)
	h := Handler(m, metrics)
	_, body, _ := get(t, h, "/metrics")
	for _, want := range []string{
		`blobfeed_verdict{verdict="catching_up"} 1`, `blobfeed_verdict{verdict="degraded"} 0`, "blobfeed_progress_ratio 0.5",
		"blobfeed_progress_seconds_left 60",
	} {
		if !strings.Contains(body, "\n"+want+"\n") {
			t.Errorf("%s is missing", want)
		}
	}
	m.engine.(*watched).state.Frontier.CatchUp = nil
	if _, body, _ = get(t, h, "/metrics"); strings.Contains(body, "blobfeed_progress") ||
		!strings.Contains(body, `blobfeed_verdict{verdict="up_to_date"} 1`) {
		t.Errorf("at the end of the feed:\n%s", body)
	}
}

// The verdict has what to do about brokers that do not answer.
func TestUnreachableBrokersHaveARemedy(t *testing.T) {
	now := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	m := NewMonitor("b", "feed", Info{}, time.Minute, func() time.Time { return now })
	refused := errors.New("dial tcp 127.0.0.1:1: connect: connection refused")
	m.BrokerFailed(refused)
	m.Failed(-1, plain.WithRemedy(fmt.Errorf("reading the topics: %w", refused), "start the brokers"))
	if v := m.Snapshot().Verdict; !strings.Contains(v.Text, "Kafka has not answered") || v.Remedy != "start the brokers" {
		t.Errorf("%+v", v)
	}
	m.Failed(-1, plain.WithRemedy(errors.New("403 AuthorizationFailure"), "give it the role"))
	if v := m.Snapshot().Verdict; !strings.Contains(v.Remedy, "bridge check") {
		t.Errorf("the remedy of something else: %+v", v)
	}
}

// An error that both the instance and a lease have met is one problem.
func TestProblemOfInstanceAndLease(t *testing.T) {
	m, engine, _ := watching(t)
	engine.state = state(nil)
	m.Leased(bridge.LeasesAssigned, []int32{0})
	for _, lease := range []int32{0, -1} {
		m.Failed(lease, plain.WithRemedy(errors.New("there is no change feed"), "enable it"))
	}
	if s := m.Snapshot(); len(s.Problems) != 1 || s.Verdict.Text != "degraded: lease 0: there is no change feed" {
		t.Errorf("%+v", s.Problems)
	}
	for _, other := range []string{"something else", "change feed"} { // one text may end in the other
		m.Failed(-1, errors.New(other))
		if s := m.Snapshot(); len(s.Problems) != 2 {
			t.Errorf("%s: %+v", other, s.Problems)
		}
	}
}
