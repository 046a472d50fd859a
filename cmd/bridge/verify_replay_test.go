package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/internal/testing/feedsim"
)

// The topic of a replay is judged by the interval that the replay recorded; once its state is deleted, by that of the
// settings.
func TestVerifyReplay(t *testing.T) {
	delivered(t, "../../testdata/real-2020")
	const from, to = "2020-01-20T00:00:00Z", "2020-05-29T18:00:00Z"
	if code, _, stderr := call(t, "replay", "--from", from, "--to", to, "--topic", "again"); code != exitOK {
		t.Fatal(stderr)
	}
	verify := func(settings string, want int, says string) {
		t.Helper()
		for s := range strings.FieldsSeq(settings) {
			name, value, _ := strings.Cut(s, "=")
			t.Setenv("BRIDGE_"+name, value)
		}
		code, stdout, stderr := call(t, "verify", "--feed", "--topic", "again")
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
	verify("", exitBroken, "lacks 100 of 549 required events")
	verify("", exitBroken, "set BRIDGE_START and BRIDGE_END_TIME to its --from and --to")
	verify("START="+from+" END_TIME="+to, exitOK, "by the marker 1590775200000000000.")
}

// Without --feed nothing is said about where the feed is, and so it need not be set.
func TestVerifyWithoutSource(t *testing.T) {
	delivered(t, "../../testdata/real-2020")
	t.Setenv("BRIDGE_SOURCE_URL", "")
	if code, stdout, stderr := call(t, "verify"); code != exitOK {
		t.Errorf("exit code %d: %s%s", code, stdout, stderr)
	}
	if code, _, stderr := call(t, "verify", "--feed"); code != exitSettings ||
		!strings.Contains(stderr, "BRIDGE_SOURCE_URL: required") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	t.Setenv("BRIDGE_FORMAT", "avro")
	if code, _, stderr := call(t, "verify"); code != exitSettings ||
		!strings.Contains(stderr, "BRIDGE_REGISTRY_URL: required for Avro") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

// Each topic of a template is judged, and one that has gone is missed.
func TestVerifyTemplate(t *testing.T) {
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
	t.Setenv("BRIDGE_NAME", "other")
	if code, _, stderr := call(t, "verify"); code != exitSettings || !strings.Contains(stderr, "name one with --topic") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

// Markers in a topic of their own are judged, and if that topic is not there it is said.
func TestVerifyMarkersAside(t *testing.T) {
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
