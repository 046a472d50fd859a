package main

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sr/srfake"

	"blobfeed/internal/testing/feedsim"
)

// A replay brings the events of all topics of a template into one topic.
func TestVerifyReplayOfATemplate(t *testing.T) {
	t.Parallel()
	delivered(t, "../../testdata/real-2020", "TOPIC=tpl.{container}")
	const from, to = "2020-01-20T00:00:00Z", "2020-05-29T18:00:00Z"
	if code, _, stderr := call(t, "replay", "--from", from, "--to", to, "--topic", "again"); code != exitOK {
		t.Fatal(stderr)
	}
	if code, stdout, stderr := call(t, "verify", "--feed", "--topic", "again"); code != exitOK ||
		!strings.Contains(stdout, "holds        replay ") {
		t.Errorf("exit code %d: %s%s", code, stdout, stderr)
	}
}

// The topic of a replay is judged by the interval that the replay recorded. Once its state is deleted, the settings may
// be those of the live bridge: what the topic has from its first event on is judged, and that its start is unknown is
// no fault.
func TestVerifyReplay(t *testing.T) {
	t.Parallel()
	cl := delivered(t, "../../testdata/real-2020")
	const from, to = "2020-01-20T00:00:00Z", "2020-05-29T18:00:00Z"
	if code, _, stderr := call(t, "replay", "--from", from, "--to", to, "--topic", "again"); code != exitOK {
		t.Fatal(stderr)
	}
	topic := "again"
	verify := func(settings string, want int, says string) {
		t.Helper()
		for s := range strings.FieldsSeq(settings) {
			name, value, _ := strings.Cut(s, "=")
			setenv(t, "BRIDGE_"+name, value)
		}
		code, stdout, stderr := call(t, "verify", "--feed", "--topic", topic)
		if code != want || !strings.Contains(stdout+stderr, says) {
			t.Errorf("exit code %d, want %d and %q: %s%s", code, want, says, stdout, stderr)
		}
	}
	verify("", exitOK, "must be in it, by the cursors in blobfeed.replay.again.offsets")
	verify("EVENTS=state", exitSettings, "BRIDGE_EVENTS=state, but again was written with all")
	verify("EVENTS=all", exitOK, "holds        replay ")
	if code, _, stderr := call(t, "replay", "--cleanup", "--topic", "again"); code != exitOK {
		t.Fatal(stderr)
	}
	if _, stdout, stderr := call(t, "verify", "--feed", "--topic", "again"); strings.Count(stdout+stderr,
		"no state says which part of the feed the topic has") != 1 ||
		!strings.Contains(stdout, "not checked  replay     the topic has every event") {
		t.Errorf("not once: %s%s", stdout, stderr)
	}
	const remedy = "set BRIDGE_START and BRIDGE_END_TIME to its --from and --to"
	verify("", exitFailed, "could not be checked: replay: ")
	verify("", exitFailed, "100 events of the feed may be missing before its first one")
	verify("", exitFailed, remedy)
	for _, s := range []string{
		"START=2020-05-28T00:00:00Z", "START=2020-05-28T00:00:00Z END_TIME=2020-05-29T10:00:00Z",
		"START=earliest END_TIME=" + to, "START=2020-01-17T00:00:00Z END_TIME=",
		"START=2020-01-17T00:00:00Z END_TIME=2020-06-01",
	} {
		verify(s, exitFailed, remedy)
	}
	verify("START="+from+" END_TIME="+to, exitOK, "by the marker 1590775200000000000.")

	// What is missing behind the first event, or was never there, is a fault by any settings.
	rs := readBy(t, cl.Opts(), "again")
	data := func(r *kgo.Record) bool { return r.Key != nil }
	last := len(rs) - 1
	for ; !data(rs[last]); last-- {
	}
	for says, changed := range map[string][]*kgo.Record{
		"lacks 1 of ":  slices.Delete(slices.Clone(rs), last, last+1),
		" is repeated": slices.Insert(slices.Clone(rs), last, rs[last]),
		"no event of this key": append(slices.Clone(rs),
			&kgo.Record{Partition: 1, Key: []byte(`["a/b"]`), Value: []byte("{}")}),
	} {
		topic = strings.ReplaceAll(says, " ", "-")
		produce(t, cl, topic, changed)
		verify("START=earliest END_TIME=", exitBroken, says)
	}
	// The first event may be missing, or the replay began behind it. The settings of the replay know.
	first := slices.IndexFunc(rs, data)
	for i, r := range rs {
		if data(r) && r.Timestamp.Before(rs[first].Timestamp) {
			first = i
		}
	}
	topic = "without-the-first"
	produce(t, cl, topic, slices.Delete(rs, first, first+1))
	verify("START=earliest END_TIME=", exitFailed, "101 events of the feed may be missing before its first one")
	verify("START="+from+" END_TIME="+to, exitBroken, "lacks 1 of 449 required events")
}

// A replay of everything leaves no doubt where it began, and needs no settings but its end.
func TestVerifyReplayOfEverything(t *testing.T) {
	t.Parallel()
	for _, setting := range []string{
		"FORMAT=json", "DELIVERY=at_least_once", "HEADERS=none", "RESOLVED_TO=topic", "FORMAT=avro",
	} {
		t.Run(setting, func(t *testing.T) {
			registry := srfake.New()
			t.Cleanup(registry.Close)
			delivered(t, "../../testdata/real-2020", setting, "REGISTRY_URL="+registry.URL())
			for _, args := range []string{
				"replay --from earliest --to 2020-05-29T18:00:00Z --topic again", "replay --cleanup --topic again",
			} {
				if code, _, stderr := call(t, strings.Fields(args)...); code != exitOK {
					t.Fatal(stderr)
				}
			}
			code, stdout, stderr := call(t, "verify", "--feed", "--topic", "again")
			if code != exitFailed || !strings.Contains(stderr, "its last marker is of no segment, but of an end time") ||
				strings.Contains(stderr, "missing") {
				t.Errorf("exit code %d: %s%s", code, stdout, stderr)
			}
			setenv(t, "BRIDGE_END_TIME", "2020-05-29T18:00:00Z")
			if code, stdout, stderr := call(t, "verify", "--feed", "--topic", "again"); code != exitOK {
				t.Errorf("exit code %d: %s%s", code, stdout, stderr)
			}
		})
	}
}

// A copy ends where it was made. The feed has gone on since, with segments that have no event.
func TestVerifyCopyFromBeforeIdleSegments(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	feed, err := feedsim.New(feedsim.Dir(dir), feedsim.Spec{EventsPerSegment: 24, Blobs: 16})
	ctx := t.Context()
	if err := errors.Join(err, feed.Open(ctx), feed.Append(ctx, 24, nil), feed.Next(ctx)); err != nil {
		t.Fatal(err)
	}
	cl := delivered(t, dir)
	produce(t, cl, "copy", readBy(t, cl.Opts(), written))
	if err := errors.Join(feed.Next(t.Context()), feed.Next(t.Context())); err != nil {
		t.Fatal(err)
	}
	if code, stdout, stderr := call(t, "verify", "--feed", "--topic", "copy"); code != exitOK {
		t.Errorf("exit code %d: %s%s", code, stdout, stderr)
	}
}

// Without --feed nothing is said about where the feed is, and so it need not be set.
func TestVerifyWithoutSource(t *testing.T) {
	t.Parallel()
	delivered(t, "../../testdata/real-2020")
	setenv(t, "BRIDGE_SOURCE_URL", "")
	if code, stdout, stderr := call(t, "verify"); code != exitOK {
		t.Errorf("exit code %d: %s%s", code, stdout, stderr)
	}
	if code, _, stderr := call(t, "verify", "--feed"); code != exitSettings ||
		!strings.Contains(stderr, "BRIDGE_SOURCE_URL: required") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	setenv(t, "BRIDGE_FORMAT", "avro")
	if code, _, stderr := call(t, "verify"); code != exitSettings ||
		!strings.Contains(stderr, "BRIDGE_REGISTRY_URL: required for Avro") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

// Each topic of a template is judged, and one that has gone is missed.
func TestVerifyTemplate(t *testing.T) {
	t.Parallel()
	cl := delivered(t, simulated(t, 2, ""), "TOPIC=all.{container}")
	code, stdout, stderr := call(t, "verify", "--feed")
	if code != exitOK {
		t.Fatalf("exit code %d: %s%s", code, stdout, stderr)
	}
	for _, topic := range []string{"all._u0024_web", "all.backups", "all.photos"} {
		if !strings.Contains(stdout, "topic "+topic+": ") {
			t.Errorf("%s is not judged: %s", topic, stdout)
		}
	}
	rs := readBy(t, cl.Opts(), "all.photos")
	produce(t, cl, "all.photos", rs[:1])
	if code, _, stderr := call(t, "verify", "--feed"); code != exitBroken ||
		!strings.Contains(stderr, "unique of all.photos") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	if code, stdout, stderr := call(t, "verify", "--feed", "--topic", "all.backups"); code != exitOK {
		t.Errorf("one of them alone: exit code %d: %s%s", code, stdout, stderr)
	}
	setenv(t, "BRIDGE_NAME", "other")
	if code, _, stderr := call(t, "verify"); code != exitSettings || !strings.Contains(stderr, "name one with --topic") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

// Markers in a topic of their own are judged, and if that topic is not there it is said.
func TestVerifyMarkersAside(t *testing.T) {
	t.Parallel()
	cl := delivered(t, "../../testdata/real-2020", "RESOLVED_TO=topic")
	if code, stdout, stderr := call(t, "verify", "--feed"); code != exitOK ||
		!strings.Contains(stdout, "holds        resolved   after") {
		t.Errorf("exit code %d: %s%s", code, stdout, stderr)
	}
	if code, stdout, stderr := call(t, "verify", "--until-resolved", "2020-05-28T00:00:00Z"); code != exitOK {
		t.Errorf("exit code %d: %s%s", code, stdout, stderr)
	}
	if _, err := kadm.NewClient(cl).DeleteTopics(t.Context(), written+".resolved"); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := call(t, "verify"); code != exitFailed ||
		!strings.Contains(stderr, "opening topic changes.resolved: it does not exist") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

// A state that a newer bridge wrote is refused in the words of the package that reads it for the engine.
func TestVerifyNewerState(t *testing.T) {
	t.Parallel()
	cl := delivered(t, "../../testdata/real-2020")
	r := &kgo.Record{Topic: "blobfeed.offsets", Key: []byte("frontier"), Value: []byte(`{"version": 99}`)}
	if err := cl.ProduceSync(t.Context(), r).FirstErr(); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := call(t, "verify"); code != exitFailed || !strings.Contains(stderr, "version 99") ||
		strings.Contains(stderr, "reads up to 0") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

// simulated writes a feed of an account with some segments, the last of them open.
func simulated(t *testing.T, segments int, account string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	feed, err := feedsim.New(feedsim.Dir(dir), feedsim.Spec{
		Account: account, Shards: 2, EventsPerSegment: 24, BlockEvents: 6, Blobs: 16,
	})
	if err := errors.Join(err, feed.Open(t.Context())); err != nil {
		t.Fatal(err)
	}
	for range segments {
		if err := errors.Join(feed.Append(t.Context(), 24, nil), feed.Next(t.Context())); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
