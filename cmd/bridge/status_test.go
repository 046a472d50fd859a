package main

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"blobfeed/internal/status"
	"blobfeed/internal/testing/fakebroker"
	"blobfeed/internal/topics"
)

func TestStatus(t *testing.T) {
	t.Parallel()
	c := clusterFor(t)
	if code, _, stderr := call(t, "status"); code != exitFailed || !strings.Contains(stderr, "no topic b.offsets") {
		t.Errorf("before the first start: exit code %d: %s", code, stderr)
	}
	runToEnd(t)
	setenv(t, "BRIDGE_SOURCE_URL", "") // status needs no feed
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
	if _, stdout, _ := call(t, "dump", "--state"); !strings.HasPrefix(stdout,
		"frontier  completed 2020/05/29/2100  current -  ") ||
		!strings.Contains(stdout, "\nlease 0   as far as the frontier  events 717  ") {
		t.Errorf("dump --state: %s", stdout)
	}
	code, stdout, _ := call(t, "status")
	for _, want := range []string{
		"b at ", "testdata/real-2020", "717 read, 717 records", "changes, 4 partitions", "0 members", "resolved  2020-",
	} {
		if code != exitOK || !strings.Contains(stdout, want) {
			t.Errorf("%q is not in:\n%s", want, stdout)
		}
	}
}

// lines is a Writer that signals after a number of documents.
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
	t.Parallel()
	deliveredReal(t)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	out := &lines{want: 3, enough: cancel}
	code := execute(ctx, environ(t), strings.Fields("status --output json --watch 10ms"), out, io.Discard)
	if code != exitOK || out.n < 3 {
		t.Errorf("exit code %d, %d reports", code, out.n)
	}
}

// History that is lost ends the run, and a start would end the same way. The state says so when nobody runs any more.
func TestStatusOfLostHistory(t *testing.T) {
	t.Parallel()
	ofFeeds["history is lost: the next to read is …"](t)
	if code, _, stderr := call(t, "run", "--once"); code != exitFailed {
		t.Fatalf("run --once: exit code %d: %s", code, stderr)
	}
	code, stdout, _ := call(t, "status")
	first, rest, _ := strings.Cut(stdout, "\n")
	if code != exitOK || !strings.HasPrefix(first, "nobody is running: ") ||
		!strings.Contains(first, ", and the last error: history is lost: the next to read is ") ||
		!strings.HasPrefix(rest, "-> set BRIDGE_ON_GAP=continue") {
		t.Errorf("exit code %d: %s", code, stdout)
	}
	setAll(t, map[string]string{"ON_GAP": "continue"})
	runToEnd(t)
	if _, stdout, _ = call(t, "status"); !strings.HasPrefix(stdout, "up to date") {
		t.Errorf("behind the gap: %s", stdout)
	}
}

// A report says that all is delivered, and after the topic was deleted, that its records are gone.
func TestStatusOfADeletedTopic(t *testing.T) {
	t.Parallel()
	c := deliveredReal(t)
	if code, stdout, _ := call(t, "status"); code != exitOK || !strings.HasPrefix(stdout, "up to date") ||
		!strings.Contains(stdout, "ahead     nothing: all is delivered") {
		t.Errorf("exit code %d: %s", code, stdout)
	}
	deleteTopic(t, fakebroker.Admin(t, c))
	code, stdout, stderr := call(t, "status", "--check")
	if code != exitFailed || !strings.HasPrefix(stdout, "degraded: topic changes does not exist") ||
		!strings.Contains(stdout, "\n-> create it with 4 partitions, as it had (bridge check prints the command), to ") {
		t.Errorf("exit code %d: %s%s", code, stdout, stderr)
	}
}

// A topic that was deleted and created again while the bridge was stopped is empty, whatever its partitions: status,
// check and the next start say so, and deliver what comes.
func TestTopicIsEmptyAgain(t *testing.T) {
	t.Parallel()
	for _, markers := range []string{"inline", "off"} {
		setAll(t, map[string]string{"RESOLVED_TO": markers, "HTTP_ADDR": "off"})
		a := fakebroker.Admin(t, deliveredReal(t))
		deleteTopic(t, a)
		if _, err := a.CreateTopic(t.Context(), 4, 1, nil, changes); err != nil {
			t.Fatal(err)
		}
		const cause = "topic changes is empty, although records were delivered to it: it was deleted and created again"
		for verb, code := range map[string]int{"status --check": exitFailed, "check": exitOK} {
			got, stdout, stderr := call(t, strings.Fields(verb)...)
			if said := stdout + stderr; got != code || !strings.Contains(said, cause) ||
				!strings.Contains(said, "restart from scratch with bridge reset") {
				t.Errorf("%s, %s: exit code %d: %s", markers, verb, got, said)
			}
		}
		warning := `"a topic of the bridge is gone","error":"` + cause
		if code, _, stderr := call(t, "run", "--once"); code != exitOK || !strings.Contains(stderr, warning) {
			t.Errorf("%s, run --once: exit code %d: %s", markers, code, stderr)
		}
		provoke(t, warning, []string{"run"})
	}
}

// A topic that was created again with fewer partitions takes no marker: run --once fails as check says, also if it has
// nothing to deliver.
func TestTopicHasFewerPartitions(t *testing.T) {
	t.Parallel()
	setAll(t, map[string]string{"HTTP_ADDR": "off"})
	a := fakebroker.Admin(t, deliveredReal(t))
	deleteTopic(t, a)
	if _, err := a.CreateTopic(t.Context(), 3, 1, nil, changes); err != nil {
		t.Fatal(err)
	}
	for _, verb := range []string{"check", "run --once", "status --check"} {
		code, stdout, stderr := call(t, strings.Fields(verb)...)
		if said := stdout + stderr; code != exitFailed || !strings.Contains(said, "changes has 3 partitions and had 4") {
			t.Errorf("%s: exit code %d: %s", verb, code, said)
		}
	}
	if _, err := a.UpdatePartitions(t.Context(), 4, changes); err != nil {
		t.Fatal(err)
	}
	runToEnd(t)
}

// An idle bridge commits nothing, and says all the same that its progress is gone.
func TestStateIsDeleted(t *testing.T) {
	t.Parallel()
	c := deliveredReal(t)
	a := fakebroker.Admin(t, c)
	setAll(t, map[string]string{"HTTP_ADDR": "off"})
	var out safeBuffer
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	go func() { ended <- execute(ctx, environ(t), []string{"run"}, &out, &out) }()
	defer func() { stop(); <-ended }()
	says := func(text string) func() bool { return func() bool { return strings.Contains(out.String(), text) } }
	await(t, "it runs", says("leases assigned"))
	if _, err := a.DeleteTopic(t.Context(), "b.offsets"); err != nil {
		t.Fatal(err)
	}
	await(t, "the log says it", says("topic b.offsets does not exist any more: the bridge's progress is gone"))
	await(t, "the log says what to do", says("bridge seek --to 2020-05-29T21:45:00Z --yes"))
	if code, _, stderr := call(t, "status"); code != exitFailed || !strings.Contains(stderr, "progress is gone") {
		t.Errorf("status: exit code %d: %s", code, stderr)
	}
	stop()
	<-ended
	ended <- exitOK
	// The way back is one command, with or without a start before it, which refuses to deliver everything twice.
	const at = "2020-05-29T21:45:00Z"
	for _, started := range []bool{true, false} {
		if started {
			if code, _, stderr := call(t, "run", "--once"); code != exitSettings ||
				!strings.Contains(stderr, "bridge seek --to") {
				t.Errorf("the next start: exit code %d: %s", code, stderr)
			}
		}
		code, stdout, stderr := call(t, "seek", "--to", at, "--yes")
		created := strings.Contains(stdout, "Topic b.offsets does not exist and is created, with 4 partitions")
		if code != exitOK || created == started {
			t.Errorf("after a start %v: exit code %d: %s%s", started, code, stdout, stderr)
		}
		before := read(t, c, changes)
		runToEnd(t)
		if events, _ := positions(newer(before, read(t, c, changes))); len(events) > 10 {
			t.Errorf("%d events came again", len(events))
		}
		settings, err := topics.Read(t.Context(), a, "b.offsets")
		if err != nil || !settings["b.offsets"].Compacted() {
			t.Errorf("%v, %v", settings, err)
		}
		if _, err := a.DeleteTopic(t.Context(), "b.offsets"); err != nil {
			t.Fatal(err)
		}
	}
}

// A name that has never run is probably a typing error: no topic is made for it unless somebody insists.
func TestSeekBeforeTheFirstStart(t *testing.T) {
	t.Parallel()
	c := clusterFor(t)
	for _, verb := range []string{"seek --to 2020/05/29/1700", "reset"} {
		code, stdout, _ := call(t, strings.Fields(verb)...)
		if code != exitOK || !strings.HasSuffix(stdout, "nothing changed; add --yes --force\n") {
			t.Errorf("%s: exit code %d: %s", verb, code, stdout)
		}
		code, _, stderr := call(t, append(strings.Fields(verb), "--yes")...)
		if code != exitFailed || !strings.Contains(stderr, "no bridge of the name b has run on these brokers: "+
			"correct BRIDGE_NAME or BRIDGE_KAFKA_BROKERS, or add --force") {
			t.Errorf("%s --yes: exit code %d: %s", verb, code, stderr)
		}
	}
	if listed, err := fakebroker.Admin(t, c).ListTopics(t.Context()); err != nil || len(listed) > 0 {
		t.Errorf("%v, %v", listed.Names(), err)
	}
	setenv(t, "BRIDGE_TOPIC_CREATE", "off")
	if code, _, stderr := call(t, "seek", "--to", "2020/05/29/1700", "--yes", "--force"); code == exitOK ||
		!strings.Contains(stderr, "kafka-topics.sh") {
		t.Errorf("the user creates topics: exit code %d: %s", code, stderr)
	}
	setenv(t, "BRIDGE_TOPIC_CREATE", "explicit")
	if code, _, stderr := call(t, "seek", "--to", "2020/05/29/1700", "--yes", "--force"); code != exitOK {
		t.Fatal(stderr)
	}
	runToEnd(t)
	if events, _ := positions(read(t, c, changes)); len(events) == 0 || events[0] < "2020/05/29/1600" {
		t.Errorf("delivered from %v on", events[:min(1, len(events))])
	}
}

// A topic that has lost partitions was deleted and created again. Status and check say so before the next event makes
// the bridge fail.
func TestTopicIsAnotherOne(t *testing.T) {
	t.Parallel()
	a := fakebroker.Admin(t, deliveredReal(t))
	deleteTopic(t, a)
	if _, err := a.CreateTopic(t.Context(), 3, 1, nil, changes); err != nil {
		t.Fatal(err)
	}
	const cause = "changes has 3 partitions and had 4: it was deleted and created again, and its records are gone"
	for verb, starts := range map[string]string{"status --check": "degraded: topic " + cause + "\n", "check": ""} {
		code, stdout, stderr := call(t, strings.Fields(verb)...)
		if code != exitFailed || !strings.HasPrefix(stdout, starts) || !strings.Contains(stdout, cause) {
			t.Errorf("%s: exit code %d: %s%s", verb, code, stdout, stderr)
		}
	}
	if code, _, stderr := call(t, "seek", "--to", "earliest", "--yes"); code != exitOK { // so that run has work
		t.Fatal(stderr)
	}
	// A broker that lags behind the others may say the same, so run only asks whether it was deleted.
	code, _, stderr := call(t, "run", "--once")
	const remedy = "changes has 3 partitions and had 4: if it was deleted and created again, its records are gone: give " +
		"it as many again to continue with new records: kafka-topics.sh --bootstrap-server 127.0.0.1:"
	if code != exitFailed || !strings.Contains(stderr, remedy) {
		t.Errorf("run: exit code %d: %s", code, stderr)
	}
}
