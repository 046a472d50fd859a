package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"

	"blobfeed/internal/check"
	"blobfeed/internal/testing/fakebroker"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	setenv(t, "BRIDGE_SOURCE_URL", "file://"+abs(t, "../../testdata/real-2020"))
	code, stdout, stderr := call(t, "check", "--output", "json")
	statuses := map[string]check.Status{}
	for line := range strings.Lines(stdout) {
		var f check.Finding
		if err := json.Unmarshal([]byte(line), &f); err != nil {
			t.Fatal(err)
		}
		statuses[f.Check] = f.Status
	}
	if code != exitFailed || len(statuses) != 7 || statuses["copy"] != "ok" || statuses["read"] != "ok" ||
		statuses["kafka"] != check.Failed {
		t.Errorf("exit code %d, %v: %s", code, statuses, stderr)
	}
	setenv(t, "BRIDGE_FORMAT", "avro")
	for _, missing := range []string{
		"failed   kafka     BRIDGE_KAFKA_BROKERS is not set", "failed   registry  BRIDGE_REGISTRY_URL is not set",
	} {
		if code, stdout, _ := call(t, "check"); code != exitFailed || !strings.Contains(stdout, missing) {
			t.Errorf("exit code %d, want %q: %s", code, missing, stdout)
		}
	}
	setenv(t, "BRIDGE_FORMAT", "json")
	brokers := fakebroker.New(t)
	setenv(t, "BRIDGE_KAFKA_BROKERS", brokers.ListenAddrs()[0])
	empty := t.TempDir()
	setenv(t, "BRIDGE_SOURCE_URL", "file://"+empty)
	if code, stdout, _ := call(t, "check"); code != exitFailed ||
		!strings.Contains(stdout, "there is no change feed in ") {
		t.Errorf("empty directory: exit code %d: %s", code, stdout)
	}
	if err := os.MkdirAll(filepath.Join(empty, "meta"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(empty, "meta/segments.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, stdout, _ := call(t, "check"); code != exitFailed || !strings.Contains(stdout, "failed   reach") {
		t.Errorf("damaged feed: exit code %d: %s", code, stdout)
	}
}

// What run refuses because of the records that are there, check refuses too.
func TestCheckComparesSettings(t *testing.T) {
	t.Parallel()
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
	setenv(t, "BRIDGE_KEY_FORMAT", "string")
	says(exitFailed, "BRIDGE_KEY_FORMAT=string, but records were written with json_array")
	setenv(t, "BRIDGE_KEY_FORMAT", "json_array")
	setenv(t, "BRIDGE_DELIVERY", "at_least_once")
	says(exitFailed, "BRIDGE_DELIVERY=at_least_once, but records were written with exactly_once")
	if code, _, stderr := call(t, "run", "--once"); code != exitSettings ||
		!strings.Contains(stderr, "BRIDGE_DELIVERY=at_least_once, but") {
		t.Errorf("run: exit code %d: %s", code, stderr)
	}
}

// What stopped the last run may stop the next one. Check does not read the whole feed, so it says so by the state.
func TestCheckNamesTheLastError(t *testing.T) {
	t.Parallel()
	run := ofFeeds["the block can't be decoded"](t)
	if code, _, stderr := call(t, run...); code != exitFailed {
		t.Fatalf("run --once: exit code %d: %s", code, stderr)
	}
	const says = "warning  state         the last run failed at lease 0: log/00/"
	if code, stdout, _ := call(t, "check"); code != exitOK || !strings.Contains(stdout, says) ||
		!strings.Contains(stdout, "-> bridge dump --at ") {
		t.Errorf("exit code %d: %s", code, stdout)
	}
	setenv(t, "BRIDGE_ON_ERROR", "dead_letter")
	runToEnd(t)
	if _, stdout, _ := call(t, "check"); strings.Contains(stdout, "the last run failed") {
		t.Errorf("after a run that delivered everything: %s", stdout)
	}
}

// Check reports how many topics a template has made, and warns before the limit is reached.
func TestCheckCountsTopics(t *testing.T) {
	t.Parallel()
	clusterFor(t)
	setenv(t, "BRIDGE_TOPIC", "{container}")
	setenv(t, "BRIDGE_CONTAINERS", "container0,container1")
	setenv(t, "BRIDGE_TOPIC_LIMIT", "10")
	says := func(line string) {
		t.Helper()
		if code, stdout, stderr := call(t, "check"); code != exitOK || !strings.Contains(stdout, line) {
			t.Errorf("exit code %d, want %q:\n%s%s", code, line, stdout, stderr)
		}
	}
	says("ok       topics        0 topics in use, of at most 10")
	runToEnd(t)
	says("ok       topics        2 topics in use, of at most 10")
	setenv(t, "BRIDGE_TOPIC_LIMIT", "2")
	says("warning  topics        2 topics in use, of at most 2")
	setenv(t, "BRIDGE_TOPIC_LIMIT", "10000")
	says("topic b.offsets has max.message.bytes=")
	setenv(t, "BRIDGE_TOPIC_ADOPT", "true")
	says("warning  topics        a client that may create containers")
}

// A topic with records, and no state, may be that of a bridge whose state was lost.
func TestCheckWithoutState(t *testing.T) {
	t.Parallel()
	c := clusterFor(t)
	runToEnd(t)
	if _, err := kadm.NewClient(fakebroker.Client(t, c)).DeleteTopic(t.Context(), "b.offsets"); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := call(t, "check")
	if code != exitFailed || !strings.Contains(stdout, "failed   records") ||
		!strings.Contains(stdout, "every event would come twice") {
		t.Errorf("exit code %d:\n%s%s", code, stdout, stderr)
	}
	// Each of the two ways out works. The first run creates the state.
	before := len(read(t, c, changes))
	first := before
	for _, args := range [][]string{{"seek", "--to", "2020/05/29/2100", "--yes"}, {"reset", "--yes"}} {
		if code, _, stderr := call(t, "run", "--once"); code != exitSettings || !strings.Contains(stderr, "holds records") {
			t.Errorf("run: exit code %d: %s", code, stderr)
		}
		if code, stdout, stderr := call(t, args...); code != exitOK {
			t.Fatalf("%v: exit code %d: %s%s", args, code, stdout, stderr)
		}
		runToEnd(t)
		after := len(read(t, c, changes))
		if after == before || args[0] == "reset" && after < before+first {
			t.Errorf("%v: %d records, then %d", args, before, after)
		}
		if _, err := kadm.NewClient(fakebroker.Client(t, c)).DeleteTopic(t.Context(), "b.offsets"); err != nil {
			t.Fatal(err)
		}
		before = after
	}
}

// A topic that is gone is created at a first start only, by whom the settings say.
func TestCheckMissingTopic(t *testing.T) {
	t.Parallel()
	c := clusterFor(t)
	says := func(code int, line string) {
		t.Helper()
		if got, stdout, stderr := call(t, "check"); got != code || !strings.Contains(stdout, line) {
			t.Errorf("exit code %d, want %d and %q:\n%s%s", got, code, line, stdout, stderr)
		}
	}
	says(exitOK, "changes does not exist; run creates it with 4 partitions")
	setenv(t, "BRIDGE_TOPIC_CREATE", "broker")
	says(exitOK, "changes does not exist; run asks the brokers for it (auto.create.topics.enable=?)")
	says(exitOK, "b.offsets does not exist; run creates it with 4 partitions")
	setenv(t, "BRIDGE_TOPIC_CREATE", "explicit")
	runToEnd(t)
	cl := fakebroker.Client(t, c)
	if _, err := kadm.NewClient(cl).DeleteTopic(t.Context(), changes); err != nil {
		t.Fatal(err)
	}
	says(exitFailed,
		"cleanup.policy=delete --config retention.ms=-1), to continue with new records, or restart from scratch with "+
			"bridge reset, or with another BRIDGE_NAME and BRIDGE_TOPIC")
	if code, _, stderr := call(t, "run", "--once"); code != exitFailed ||
		!strings.Contains(stderr, "its records are gone") {
		t.Errorf("run: exit code %d: %s", code, stderr)
	}
	// Of many topics, those with records are known.
	setenv(t, "BRIDGE_NAME", "many")
	setenv(t, "BRIDGE_TOPIC", "{container}")
	const topic = "test-container-6ad5cfac-aa2e-48fa-bae2-ce62487c312f"
	setenv(t, "BRIDGE_CONTAINERS", topic)
	runToEnd(t)
	if _, err := kadm.NewClient(cl).DeleteTopic(t.Context(), topic); err != nil {
		t.Fatal(err)
	}
	says(exitFailed, topic+" does not exist")
}

// A person waits for a check: it makes three requests to storage that does not answer, and no others.
func TestCheckOfSilentStorage(t *testing.T) {
	t.Parallel()
	var requests atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		<-r.Context().Done()
	}))
	defer s.Close()
	args := set("SOURCE_URL="+s.URL+"/account SOURCE_AUTH=shared_key SOURCE_KEY=a2V5 INITIAL_SCAN=yes "+
		"NETWORK_TIMEOUT=500ms", "check")(t)
	code, stdout, stderr := call(t, args...)
	if n := requests.Load(); code != exitFailed || n != 3 || !strings.Contains(stdout, "failed   reach ") ||
		strings.Contains(stdout, "failed   scan ") {
		t.Errorf("exit code %d, %d requests:\n%s%s", code, n, stdout, stderr)
	}
}

func TestCheckOfAStartBehindTheFeed(t *testing.T) {
	t.Parallel()
	clusterFor(t)
	for start, want := range map[string]string{
		"2100-01-01": "warning  start         BRIDGE_START is in the future, 2100-01-01T00:00:00Z: nothing is",
		"2021-01-01": "warning  start         the feed has no segment from BRIDGE_START on, 2021-01-01T00:00:00Z: nothing",
		"2020-05-27": "ok       state         there is no progress yet: run starts at 2020-05-27 (the first segment " +
			"from then on is 2020/05/27/1500)\n",
		"2020-05-27T15:00:00Z":           "there is no progress yet: run starts at 2020-05-27T15:00:00Z\n",
		"1590595200000000001.0000000000": "there is no progress yet: run starts at 2020-05-27T16:00:00Z\n",
	} {
		setenv(t, "BRIDGE_START", start)
		if code, stdout, stderr := call(t, "check"); code != exitOK || !strings.Contains(stdout, want) {
			t.Errorf("exit code %d, want %q:\n%s%s", code, want, stdout, stderr)
		}
	}
	setenv(t, "BRIDGE_START", "earliest")
	setenv(t, "BRIDGE_END_TIME", "2020-01-01")
	const want = "warning  state         there is no progress yet: run starts at earliest and ends at 2020-01-01, " +
		"before the first segment, 2020-01-16T21:00:00Z: it delivers nothing\n"
	if code, stdout, stderr := call(t, "check"); code != exitOK || !strings.Contains(stdout, want) {
		t.Errorf("exit code %d, want %q:\n%s%s", code, want, stdout, stderr)
	}
}

// A copy that is older than the one that was delivered ends before the bridge's place: nothing is late, and no other
// attempt helps.
func TestCheckOfAnOlderCopy(t *testing.T) {
	t.Parallel()
	clusterFor(t)
	copied(t, func(string) error { return nil })
	runToEnd(t)
	dir := strings.TrimPrefix(environ(t)["BRIDGE_SOURCE_URL"], "file://")
	if err := os.RemoveAll(filepath.Join(dir, "idx/segments/2020/05/29/2100")); err != nil {
		t.Fatal(err)
	}
	const want = "failed   history       the feed has no segment 2020/05/29/2100, where the bridge is: this may be an"
	if code, stdout, stderr := call(t, "check"); code != exitFailed || !strings.Contains(stdout, want) {
		t.Errorf("exit code %d: %s%s", code, stdout, stderr)
	}
}
