package main

import (
	"context"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sr/srfake"

	"blobfeed/internal/change"
	"blobfeed/internal/fakebroker"
	"blobfeed/internal/status"
)

const changes = "changes"

// deliveredReal starts a broker, lets run --once deliver the real feed, and returns the broker.
func deliveredReal(t *testing.T) *kfake.Cluster {
	t.Helper()
	c := clusterFor(t)
	runToEnd(t)
	return c
}

// clusterFor starts a broker, and sets what the verbs need to reach it and the real feed.
func clusterFor(t *testing.T) *kfake.Cluster {
	t.Helper()
	c := fakebroker.New(t)
	for name, value := range map[string]string{
		"NAME": "b", "SOURCE_URL": "file://" + abs(t, "../../testdata/real-2020"), "KAFKA_BROKERS": strings.Join(c.ListenAddrs(), ","), "TOPIC": changes, "EVENTS": "all",
		"TOPIC_PARTITIONS": "4", "TOPIC_REPLICATION": "1", "OFFSETS_LEASES": "4", "COMMIT_INTERVAL": "50ms", "POLL_INTERVAL": "50ms", "SESSION_TIMEOUT": "6s",
	} {
		t.Setenv("BRIDGE_"+name, value)
	}
	return c
}

func runToEnd(t *testing.T) {
	t.Helper()
	if code, _, stderr := call(t, "run", "--once"); code != exitOK {
		t.Fatalf("run --once: exit code %d: %s", code, stderr)
	}
}

// read returns what is committed to a topic, by partition.
func read(t *testing.T, c *kfake.Cluster, topic string) (records []*kgo.Record) {
	t.Helper()
	return readBy(t, []kgo.Opt{kgo.SeedBrokers(c.ListenAddrs()...)}, topic)
}

// readBy does so with the options of a client.
func readBy(t *testing.T, options []kgo.Opt, topic string) (records []*kgo.Record) {
	t.Helper()
	cl, err := kgo.NewClient(append(slices.Clone(options), kgo.ConsumeTopics(topic), kgo.KeepControlRecords(),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))...)
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	listed, err := kadm.NewClient(cl).ListCommittedOffsets(t.Context(), topic)
	if err != nil {
		t.Fatal(err)
	}
	ends := listed.Offsets()
	left := func() (n int) {
		ends.Each(func(o kadm.Offset) {
			if o.At > 0 {
				n++
			}
		})
		return n
	}
	for left() > 0 {
		fs := cl.PollFetches(t.Context())
		if err := fs.Err(); err != nil {
			t.Fatal(err)
		}
		fs.EachRecord(func(r *kgo.Record) {
			end, _ := ends.Lookup(topic, r.Partition)
			if !r.Attrs.IsControl() && r.Offset < end.At {
				records = append(records, r)
			}
			if r.Offset+1 >= end.At {
				ends.Delete(topic, r.Partition)
			}
		})
	}
	slices.SortStableFunc(records, func(a, b *kgo.Record) int { return int(a.Partition - b.Partition) })
	return records
}

func header(r *kgo.Record, name string) string {
	for _, h := range r.Headers {
		if h.Key == name {
			return string(h.Value)
		}
	}
	return ""
}

// positions returns where in the feed the events come from, sorted, and the markers.
func positions(records []*kgo.Record) (events []string, markers []*kgo.Record) {
	for _, r := range records {
		if r.Key == nil {
			markers = append(markers, r)
		} else {
			events = append(events, header(r, "position"))
		}
	}
	slices.Sort(events)
	return events, markers
}

func statusOf(t *testing.T) *status.Status {
	t.Helper()
	code, stdout, stderr := call(t, "status", "--output", "json")
	s := new(status.Status)
	if err := json.Unmarshal([]byte(stdout), s); err != nil || code != exitOK {
		t.Fatalf("status: exit code %d, %v: %s%s", code, err, stdout, stderr)
	}
	return s
}

func TestStatus(t *testing.T) {
	c := clusterFor(t)
	if code, _, stderr := call(t, "status"); code != exitFailed || !strings.Contains(stderr, "no topic b.offsets") {
		t.Errorf("before the first start: exit code %d: %s", code, stderr)
	}
	runToEnd(t)
	t.Setenv("BRIDGE_SOURCE_URL", "") // status needs no feed
	s := statusOf(t)
	if s.Name != "b" || !s.Started || s.Position.Completed == "" || s.Totals.Read != 717 || s.Totals.Emitted != 717 ||
		len(s.Leases) != 4 ||
		len(s.Topics) != 1 ||
		s.Topics[0] != (status.Topic{Name: changes, Partitions: 4}) {
		t.Errorf("%+v", s)
	}
	var last time.Time
	for _, r := range read(t, c, changes) {
		if r.Key != nil && r.Timestamp.After(last) {
			last = r.Timestamp
		}
	}
	if s.Position.Event == nil || !s.Position.Event.Equal(last) || s.Lag.Event == nil ||
		*s.Lag.Event != s.Now.Sub(last).Seconds() {
		t.Errorf("last event %v, want %v; lag %v", s.Position.Event, last, s.Lag.Event)
	}
	if s.Position.Resolved == nil || s.Lag.Resolved == nil || *s.Lag.Resolved <= *s.Lag.Event-3600 ||
		len(s.Group.Members) != 0 ||
		s.Leases[0].State != status.Free ||
		s.Leases[0].Owner == "" {
		t.Errorf("%+v, %+v", s.Group, s.Leases[0])
	}
	// Bundles leave cursors behind. What is complete is complete for every lease.
	if l := s.Leases[0]; !l.Frontier || l.Segment != "" || l.Events == 0 {
		t.Errorf("%+v", l)
	}
	if _, stdout, _ := call(t, "dump", "--state"); !strings.HasPrefix(
		stdout,
		"frontier  completed 2020/05/29/2100  current -  ",
	) ||
		!strings.Contains(stdout, "\nlease 0   all delivered  events 717  ") {
		t.Errorf("dump --state: %s", stdout)
	}
	code, stdout, _ := call(t, "status")
	for _, want := range []string{"b at ", "testdata/real-2020", "717 read, 717 records", "changes, 4 partitions", "0 members", "resolved  2020-"} {
		if code != exitOK || !strings.Contains(stdout, want) {
			t.Errorf("%q is not in:\n%s", want, stdout)
		}
	}
}

// While an instance runs, status says so; it is not moved or reset from under it unless forced, and goes on if it is.
func TestStateOfLiveBridge(t *testing.T) {
	c := clusterFor(t)
	t.Setenv("BRIDGE_INSTANCE", "live")
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	go func() { ended <- execute(ctx, []string{"run"}, io.Discard, io.Discard) }()
	defer func() { stop(); <-ended }()
	await(t, "the feed is delivered", func() bool {
		code, stdout, _ := call(t, "status", "--output", "json")
		s := new(status.Status)
		return code == exitOK && json.Unmarshal([]byte(stdout), s) == nil && s.Totals.Read == 717
	})
	s := statusOf(t)
	if len(s.Group.Members) != 1 || s.Group.Members[0].Instance != "live" || len(s.Group.Members[0].Leases) != 4 ||
		s.Leases[0].State != status.Held ||
		s.Leases[0].Owner != "live" ||
		s.Leases[0].Member != "live" {
		t.Errorf("%+v\n%+v", s.Group, s.Leases)
	}
	for _, verb := range []string{"seek --to earliest", "reset"} {
		if code, stdout, stderr := call(t, strings.Fields(verb)...); code != exitOK ||
			!strings.Contains(stdout, "These instances run: live") ||
			!strings.Contains(stdout, "nothing changed; add --yes") {
			t.Errorf("%s: exit code %d: %s%s", verb, code, stdout, stderr)
		}
		if code, _, stderr := call(t, append(strings.Fields(verb), "--yes")...); code != exitFailed ||
			!strings.Contains(stderr, "live members (live)") {
			t.Errorf("%s --yes: exit code %d: %s", verb, code, stderr)
		}
	}
	if code, stdout, stderr := call(t, "seek", "--to", "earliest", "--yes", "--force"); code != exitOK &&
		code != exitFenced {
		t.Fatalf("exit code %d: %s%s", code, stdout, stderr)
	}
	await(
		t,
		"all of it is delivered again",
		func() bool { return statusOf(t).Totals.Read == 2*717 && statusOf(t).Position.Seek == nil },
	)
	if events, _ := positions(read(t, c, changes)); len(events) != 2*717 {
		t.Errorf("%d events, want each twice", len(events))
	}
}

func await(t *testing.T, what string, cond func() bool) {
	t.Helper()
	deadline := time.Now().Add(40 * time.Second)
	for !cond() {
		if time.Now().After(deadline) {
			t.Fatalf("still not: %s", what)
		}
		time.Sleep(50 * time.Millisecond) // between two looks
	}
}

// seek moves back to a segment, to a time, and forward: what is there comes again or is left out, exactly.
func TestSeek(t *testing.T) {
	c := deliveredReal(t)
	before := read(t, c, changes)
	first, marks := positions(before)
	segment := "2020/05/27/1800"
	var from []string
	for _, p := range first {
		if p >= segment {
			from = append(from, p)
		}
	}
	if len(from) == 0 || len(from) == len(first) {
		t.Fatalf("%d of %d events are in %s or later", len(from), len(first), segment)
	}
	last := marks[len(marks)-1]

	code, stdout, _ := call(t, "seek", "--to", segment)
	for _, want := range []string{"continues at", segment, "are repeated", "promised", "nothing changed; add --yes"} {
		if code != exitOK || !strings.Contains(stdout, want) {
			t.Errorf("exit code %d, %q is not in:\n%s", code, want, stdout)
		}
	}
	runToEnd(t)
	if got := read(t, c, changes); len(got) != len(before) {
		t.Fatalf("without --yes %d records have come", len(got)-len(before))
	}

	if code, stdout, stderr := call(t, "seek", "--to", segment, "--yes"); code != exitOK ||
		!strings.HasSuffix(stdout, "done\n") {
		t.Fatalf("exit code %d: %s%s", code, stdout, stderr)
	}
	if s := statusOf(t); s.Position.Seek == nil || s.Position.Seek.To != segment || s.Position.Resolved == nil {
		t.Errorf("%+v", s.Position)
	}
	runToEnd(t)
	after := newer(before, read(t, c, changes))
	events, markers := positions(after)
	if !slices.Equal(events, from) {
		t.Errorf("%d events came again, want the %d from %s on", len(events), len(from), segment)
	}
	// I6: on each partition the last marker stands in front again, and tells.
	for p := range int32(4) {
		i := slices.IndexFunc(after, func(r *kgo.Record) bool { return r.Partition == p })
		if r := after[i]; r.Key != nil || string(r.Value) != string(last.Value) ||
			!strings.HasSuffix(header(r, "seek"), " "+segment) {
			t.Errorf("partition %d begins with %s, headers %v", p, r.Value, r.Headers)
		}
	}
	told := 0
	for _, m := range markers {
		if string(m.Value) < string(last.Value) {
			t.Errorf("a marker goes back: %s", m.Value)
		}
		if header(m, "seek") != "" {
			told++
		}
	}
	if told != 4 {
		t.Errorf("%d markers tell of the seek, want one for each partition", told)
	}

	before = read(t, c, changes)
	at := "2020-05-27T18:00:00Z"
	if code, _, stderr := call(t, "seek", "--to", at, "--yes"); code != exitOK {
		t.Fatal(stderr)
	}
	runToEnd(t)
	events, _ = positions(newer(before, read(t, c, changes)))
	want, _ := positions(
		slices.DeleteFunc(
			slices.Clone(before),
			func(r *kgo.Record) bool { return header(r, "updated") < "1590602400000000000" },
		),
	)
	slices.Sort(want)
	if want = slices.Compact(want); !slices.Equal(events, want) {
		t.Errorf("%d events from %s on came again, want %d", len(events), at, len(want))
	}

	// Forward, to behind the feed: nothing is left.
	before = read(t, c, changes)
	code, stdout, stderr := call(t, "seek", "--to", "2021-01-01T00:00:00Z", "--yes")
	if code != exitOK || !strings.Contains(stdout, "are skipped") || strings.Contains(stdout, "again") {
		t.Errorf("exit code %d: %s%s", code, stdout, stderr)
	}
	runToEnd(t)
	if events, _ := positions(newer(before, read(t, c, changes))); len(events) != 0 {
		t.Errorf("%d events came", len(events))
	}
}

// newer returns the records that came since, in order.
func newer(before, after []*kgo.Record) (records []*kgo.Record) {
	ends := map[int32]int64{}
	for _, r := range before {
		ends[r.Partition] = max(ends[r.Partition], r.Offset+1)
	}
	return slices.DeleteFunc(after, func(r *kgo.Record) bool { return r.Offset < ends[r.Partition] })
}

func TestReset(t *testing.T) {
	c := deliveredReal(t)
	t.Setenv("BRIDGE_EVENTS", "state") // frozen
	if code, _, stderr := call(t, "run", "--once"); code != exitUsage || !strings.Contains(stderr, "BRIDGE_EVENTS") {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	code, stdout, _ := call(t, "reset", "--output", "json")
	var p change.Plan
	if err := json.Unmarshal([]byte(stdout), &p); err != nil || code != exitOK || p.Done || len(p.Rows) < 3 ||
		len(p.Members) != 0 {
		t.Errorf("exit code %d, %v: %s", code, err, stdout)
	}
	if !statusOf(t).Started {
		t.Fatal("without --yes it was done")
	}
	if code, stdout, stderr := call(t, "reset", "--yes"); code != exitOK || !strings.HasSuffix(stdout, "done\n") {
		t.Fatalf("exit code %d: %s%s", code, stdout, stderr)
	}
	if s := statusOf(t); s.Started || s.Totals.Read != 0 {
		t.Errorf("%+v", s)
	}
	before := read(t, c, changes)
	t.Setenv("BRIDGE_EVENTS", "all")
	runToEnd(t)
	events, _ := positions(newer(before, read(t, c, changes)))
	if want, _ := positions(before); !slices.Equal(events, want) {
		t.Errorf("%d events after the reset, want all %d", len(events), len(want))
	}
}

func TestStateUsage(t *testing.T) {
	clusterFor(t)
	for args, want := range map[string]struct {
		code int
		says string
	}{
		"seek":                                   {exitUsage, "--to"},
		"seek --to yesterday":                    {exitUsage, "yesterday"},
		"seek --to earliest more":                {exitUsage, `unexpected argument "more"`},
		"seek --to earliest":                     {exitFailed, "no topic b.offsets"},
		"seek --to 2020/05/27/1500 --output xml": {exitUsage, "xml"},
		"reset now":                              {exitUsage, `unexpected argument "now"`},
		"reset":                                  {exitFailed, "no topic b.offsets"},
		"status --watch never":                   {exitUsage, "watch"},
		"status --output xml":                    {exitUsage, "xml"},
		"seek --help":                            {exitOK, "After a move back"},
	} {
		code, stdout, stderr := call(t, strings.Fields(args)...)
		if code != want.code || !strings.Contains(stdout+stderr, want.says) {
			t.Errorf("bridge %s: exit code %d\n%s%s", args, code, stdout, stderr)
		}
	}
}

// lines is a Writer that tells when so many documents have come.
type lines struct {
	n, want int
	enough  func()
}

func (l *lines) Write(b []byte) (int, error) {
	l.n += strings.Count(string(b), "\n")
	if l.n >= l.want {
		l.enough()
	}
	return len(b), nil
}

func TestStatusWatch(t *testing.T) {
	deliveredReal(t)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	out := &lines{want: 3, enough: cancel}
	if code := execute(ctx, strings.Fields("status --output json --watch 10ms"), out, new(strings.Builder)); code != exitOK ||
		out.n < 3 {
		t.Errorf("exit code %d, %d reports", code, out.n)
	}
}

// Without transactions nothing keeps an instance from writing, so not even --force takes its leases.
func TestNoForceWithoutFence(t *testing.T) {
	clusterFor(t)
	t.Setenv("BRIDGE_DELIVERY", "at_least_once")
	t.Setenv("BRIDGE_INSTANCE", "live")
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	go func() { ended <- execute(ctx, []string{"run"}, io.Discard, io.Discard) }()
	await(t, "the instance is a member", func() bool {
		code, stdout, _ := call(t, "status")
		return code == exitOK && strings.Contains(stdout, "1 members") && strings.Contains(stdout, "717 read")
	})
	t.Setenv("BRIDGE_DELIVERY", "exactly_once") // as an operator's terminal has it by default; the state knows better
	code, _, stderr := call(t, "reset", "--yes", "--force")
	stop()
	<-ended
	if code != exitFailed || !strings.Contains(stderr, "without transactions") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	if !statusOf(t).Started {
		t.Error("it was done")
	}
	await(t, "the member is gone", func() bool { return len(statusOf(t).Group.Members) == 0 })
	if code, _, stderr := call(t, "seek", "--to", "2020/05/29/2100", "--yes"); code != exitOK ||
		statusOf(t).Position.Seek == nil {
		t.Errorf("stopped: exit code %d: %s", code, stderr)
	}
}

// What run refuses because of the records that are there, check refuses too.
func TestCheckComparesSettings(t *testing.T) {
	clusterFor(t)
	says := func(code int, line string) {
		t.Helper()
		if got, stdout, stderr := call(t, "check"); got != code || !strings.Contains(stdout, line) {
			t.Errorf("exit code %d, want %d and %q:\n%s%s", got, code, line, stdout, stderr)
		}
	}
	says(exitOK, "there is no progress yet: run starts at earliest")
	runToEnd(t)
	says(exitOK, "there is progress, with these settings")
	t.Setenv("BRIDGE_KEY_FORMAT", "string")
	says(exitFailed, "BRIDGE_KEY_FORMAT=string, but records were written with json_array")
	t.Setenv("BRIDGE_KEY_FORMAT", "json_array")
	t.Setenv("BRIDGE_DELIVERY", "at_least_once")
	says(exitFailed, "BRIDGE_DELIVERY=at_least_once, but records were written with exactly_once")
	if code, _, stderr := call(t, "run", "--once"); code != exitUsage ||
		!strings.Contains(stderr, "BRIDGE_DELIVERY=at_least_once, but") {
		t.Errorf("run: exit code %d: %s", code, stderr)
	}
}

// event_time has one type in all of a topic: a reader by the latest schema would take millis for micros.
func TestAvroTimestampsAreFrozen(t *testing.T) {
	registry := srfake.New()
	defer registry.Close()
	clusterFor(t)
	t.Setenv("BRIDGE_FORMAT", "avro")
	t.Setenv("BRIDGE_REGISTRY_URL", registry.URL())
	runToEnd(t)
	t.Setenv("BRIDGE_AVRO_TIMESTAMPS", "millis")
	code, _, stderr := call(t, "run", "--once")
	if code != exitUsage ||
		!strings.Contains(stderr, "BRIDGE_AVRO_TIMESTAMPS=millis, but records were written with micros") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

// Check reports how many topics a template has made, and warns before the limit is reached.
func TestCheckCountsTopics(t *testing.T) {
	clusterFor(t)
	t.Setenv("BRIDGE_TOPIC", "{container}")
	t.Setenv("BRIDGE_CONTAINERS", "container0,container1")
	t.Setenv("BRIDGE_TOPIC_LIMIT", "10")
	says := func(line string) {
		t.Helper()
		if code, stdout, stderr := call(t, "check"); code != exitOK || !strings.Contains(stdout, line) {
			t.Errorf("exit code %d, want %q:\n%s%s", code, line, stdout, stderr)
		}
	}
	says("ok       topics        0 of 10 topics are in use")
	runToEnd(t)
	says("ok       topics        2 of 10 topics are in use")
	t.Setenv("BRIDGE_TOPIC_LIMIT", "2")
	says("warning  topics        2 of 2 topics are in use")
	t.Setenv("BRIDGE_TOPIC_LIMIT", "10000")
	says("topic b.offsets has max.message.bytes=")
	t.Setenv("BRIDGE_TOPIC_ADOPT", "true")
	says("warning  topics        a client that may create containers")
}

// A topic that is gone is created at a first start only, by whom the settings say.
func TestCheckMissingTopic(t *testing.T) {
	c := clusterFor(t)
	says := func(code int, line string) {
		t.Helper()
		if got, stdout, stderr := call(t, "check"); got != code || !strings.Contains(stdout, line) {
			t.Errorf("exit code %d, want %d and %q:\n%s%s", got, code, line, stdout, stderr)
		}
	}
	says(exitOK, "changes does not exist; run creates it with 4 partitions")
	t.Setenv("BRIDGE_TOPIC_CREATE", "broker")
	says(exitOK, "changes does not exist; run asks the brokers for it (auto.create.topics.enable=?)")
	says(exitOK, "b.offsets does not exist; run creates it with 4 partitions")
	t.Setenv("BRIDGE_TOPIC_CREATE", "explicit")
	runToEnd(t)
	cl := fakebroker.Client(t, c)
	if _, err := kadm.NewClient(cl).DeleteTopic(t.Context(), changes); err != nil {
		t.Fatal(err)
	}
	says(
		exitFailed,
		"its records are gone: create it with 4 partitions, as it had, to continue with new records, or restart from scratch with bridge reset, or with another BRIDGE_NAME and BRIDGE_TOPIC",
	)
	if code, _, stderr := call(t, "run", "--once"); code != exitFailed ||
		!strings.Contains(stderr, "its records are gone") {
		t.Errorf("run: exit code %d: %s", code, stderr)
	}
	// Of many topics, those with records are known.
	t.Setenv("BRIDGE_NAME", "many")
	t.Setenv("BRIDGE_TOPIC", "{container}")
	const topic = "test-container-6ad5cfac-aa2e-48fa-bae2-ce62487c312f"
	t.Setenv("BRIDGE_CONTAINERS", topic)
	runToEnd(t)
	if _, err := kadm.NewClient(cl).DeleteTopic(t.Context(), topic); err != nil {
		t.Fatal(err)
	}
	says(exitFailed, topic+" does not exist")
}

// Markers that a seek breaks are told of also where nothing was delivered: their readers count on them all the same.
func TestSeekTellsOfMarkers(t *testing.T) {
	clusterFor(t)
	t.Setenv("BRIDGE_CONTAINERS", "none")
	runToEnd(t)
	if s := statusOf(t); s.Totals.Emitted != 0 || s.Position.Resolved == nil {
		t.Fatalf("%+v", s)
	}
	for to, tells := range map[string]bool{"2020/05/27/1500": true, "earliest": true, "2021-01-01T00:00:00Z": false} {
		code, stdout, stderr := call(t, "seek", "--to", to)
		if code != exitOK || strings.Contains(stdout, "Markers have promised") != tells ||
			strings.Contains(stdout, "Delivered events are repeated") {
			t.Errorf("to %s: exit code %d: %s%s", to, code, stdout, stderr)
		}
	}
}
