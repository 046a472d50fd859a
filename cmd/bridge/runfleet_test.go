package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"

	"blobfeed/bridge/pipeline"
	"blobfeed/internal/catalog"
	"blobfeed/internal/ops"
	"blobfeed/internal/progress"
	"blobfeed/internal/testing/fakebroker"
	"blobfeed/internal/testing/feedsim"
)

// fleetOf writes a settings file with three bridges: of the real feed, of a simulated one, and one that cannot start,
// for its topic is compacted.
func fleetOf(t *testing.T, c *kfake.Cluster, more string) (path string) {
	t.Helper()
	root := t.TempDir()
	spec := feedsim.Spec{Shards: 3, EventsPerSegment: 600}
	if err := feedsim.Write(t.Context(), feedsim.Dir(root), spec, nil); err != nil {
		t.Fatal(err)
	}
	policy := "compact"
	settings := map[string]*string{"cleanup.policy": &policy}
	if _, err := fakebroker.Admin(t, c).CreateTopic(t.Context(), 1, 1, settings, "broken"); err != nil {
		t.Fatal(err)
	}
	return fleetFile(t, fmt.Sprintf(`
kafka_brokers: ["%s"]
topic_partitions: 2
offsets_leases: 2
commit_interval: 50ms
poll_interval: 50ms
session_timeout: 6s
%s
bridges:
  photos: {source_url: "file://%s", topic: photos, events: all}
  sim: {source_url: "file://%s", topic: sim}
  broken: {source_url: "file://%[4]s", topic: broken}
`, c.ListenAddrs()[0], more, abs(t, "../../testdata/real-2020"), root))
}

// contents returns what a topic holds, in an order that does not depend on that of the shards.
func contents(t *testing.T, c *kfake.Cluster, topic string) (all []string) {
	t.Helper()
	for _, r := range read(t, c, topic) {
		at := header(r, "position")
		all = append(all, fmt.Sprintf("%d %s %s %s %s", r.Partition, r.Key, r.Value, at, r.Timestamp))
	}
	slices.Sort(all)
	return all
}

// Bridges of a fleet write what each writes alone, once, and one that fails does not keep the others from it.
func TestFleetDeliversAsSingleRuns(t *testing.T) {
	t.Parallel()
	together, alone := fakebroker.New(t), fakebroker.New(t)
	file := fleetOf(t, together, "http_addr: 'off'")
	for range 2 { // the second run adds nothing
		code, _, stderr := call(t, "run", "--once", "--config", file)
		if code != exitSettings || !strings.Contains(stderr, `"msg":"run has failed","error":"bridge broken: `) ||
			strings.Contains(stderr, "bridge sim: ") {
			t.Errorf("exit code %d: %s", code, stderr)
		}
	}
	setenv(t, "BRIDGE_KAFKA_BROKERS", alone.ListenAddrs()[0])
	for _, name := range []string{"photos", "sim"} {
		setenv(t, "BRIDGE_NAME", name)
		if code, _, stderr := call(t, "run", "--once", "--config", file); code != exitOK {
			t.Fatalf("%s: exit code %d: %s", name, code, stderr)
		}
		got, want := contents(t, together, name), contents(t, alone, name)
		if !slices.Equal(got, want) || len(want) < 500 {
			t.Errorf("%s: %d records in a fleet, %d alone", name, len(got), len(want))
		}
	}
}

// get returns an answer of the process.
func get(t *testing.T, url string) (status int, body string) {
	t.Helper()
	answer, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

// listed returns a bridge of the process's list.
func listed(t *testing.T, base, name string) (b ops.BridgeStatus) {
	t.Helper()
	var s ops.FleetStatus
	_, body := get(t, base+"/status")
	if err := json.NewDecoder(bytes.NewBufferString(body)).Decode(&s); err != nil {
		t.Fatal(err)
	}
	if i := slices.IndexFunc(s.Bridges, func(b ops.BridgeStatus) bool { return b.Name == name }); i >= 0 {
		b = s.Bridges[i]
	}
	return b
}

// background runs the bridges of a file until stop, and returns the address of the process.
func background(t *testing.T, file string) (base string, log *safeBuffer, stop func()) {
	t.Helper()
	base, log, signal := running(t, "--config", file)
	return base, log, func() { t.Helper(); signal(syscall.SIGTERM) }
}

// running runs until it gets a signal from stop, which waits for its end, and returns the address of the process. The
// signal stops all that runs in it, so tests with it are not parallel.
func running(t *testing.T, args ...string) (base string, log *safeBuffer, stop func(syscall.Signal)) {
	t.Helper()
	log = new(safeBuffer)
	ended := make(chan int, 1)
	go func() {
		ended <- execute(context.Background(), environ(t), append([]string{"run"}, args...), io.Discard, log)
	}()
	await(t, "the HTTP server", func() bool { return strings.Contains(log.String(), `"msg":"serving HTTP"`) })
	_, address, _ := strings.Cut(log.String(), `"msg":"serving HTTP","address":"`)
	address, _, _ = strings.Cut(address, `"`)
	return "http://" + address, log, func(sig syscall.Signal) {
		t.Helper()
		if err := syscall.Kill(os.Getpid(), sig); err != nil {
			t.Fatal(err)
		}
		select {
		case code := <-ended:
			if code != exitOK {
				t.Errorf("exit code %d: %s", code, log)
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("the process does not stop: %s", log)
		}
	}
}

// A bridge that fails is listed as degraded, and the process is ready without it. It starts again when it can.
func TestFleetFailsAlone(t *testing.T) {
	c := fakebroker.New(t)
	base, log, stop := background(t, fleetOf(t, c, "http_addr: '127.0.0.1:0'"))
	await(t, "all that the others have to deliver", func() bool {
		return listed(t, base, "photos").Events == 717 && listed(t, base, "sim").Events == 600
	})
	await(t, "the failure", func() bool { return listed(t, base, "broken").Verdict.Code == "degraded" })
	b := listed(t, base, "broken")
	if b.Ready || !strings.Contains(b.Verdict.Text, "the bridge has failed and starts again within ") {
		t.Errorf("%+v", b)
	}
	if code, body := get(t, base+"/readyz"); code != http.StatusOK {
		t.Errorf("%d: %s", code, body)
	}
	setenv(t, "BRIDGE_HTTP_ADDR", strings.TrimPrefix(base, "http://"))
	if code, out, stderr := call(t, "healthcheck"); code != exitOK || out != "ready\n" {
		t.Errorf("healthcheck: exit code %d: %s%s", code, out, stderr)
	}
	_, metrics := get(t, base+"/metrics")
	for _, want := range []string{
		`blobfeed_events_read_total{bridge="photos"} 717`, `blobfeed_events_read_total{bridge="sim"} 600`,
		`blobfeed_unready{bridge="broken",reason="failed"} 1`, `blobfeed_unready{bridge="sim",reason="failed"} 0`,
		`blobfeed_verdict{bridge="broken",verdict="degraded"} 1`,
		`blobfeed_kafka_connects_total{bridge="sim",node_id="0"}`, "\ngo_goroutines ", "\nprocess_open_fds ",
	} {
		if !strings.Contains(metrics, want) {
			t.Errorf("the metrics lack %s", want)
		}
	}
	if _, own := get(t, base+"/bridges/sim/metrics"); strings.Contains(own, `bridge="photos"`) ||
		!strings.Contains(own, `blobfeed_events_read_total{bridge="sim"} 600`) {
		t.Error("the metrics of one bridge are those of another")
	}
	if _, own := get(t, base+"/bridges/sim/status"); !strings.Contains(own, `"name":"sim"`) {
		t.Errorf("%s", own)
	}
	for path, want := range map[string]string{
		"/": "All bridges", "/bridges/sim/": "Resolved up to", "/bridges/x/": "no bridge",
	} {
		if _, body := get(t, base+path); !strings.Contains(body, want) {
			t.Errorf("%s lacks %q", path, want)
		}
	}
	deleted := "delete"
	_, err := fakebroker.Admin(t, c).AlterTopicConfigs(t.Context(),
		[]kadm.AlterConfig{{Name: "cleanup.policy", Value: &deleted}}, "broken")
	if err != nil {
		t.Fatal(err)
	}
	await(t, "the next start", func() bool { return listed(t, base, "broken").Events == 600 })
	if b := listed(t, base, "broken"); !b.Ready || b.Verdict.Bad() {
		t.Errorf("%+v", b)
	}
	if stop(); !strings.Contains(log.String(), `"msg":"stopped","events":1917,`) {
		t.Errorf("the log lacks the events of all: %s", log)
	}
}

// A fleet with a problem in the settings of one bridge does not start.
func TestFleetRefused(t *testing.T) {
	t.Parallel()
	none := "source_url: \"file://" + filepath.Join(t.TempDir(), "none") + "\""
	for text, want := range map[string]string{
		"kafka_brokers: x:1\nbridges: {a: {start: never, " + none + "}}": "BRIDGE_START (",
		"kafka_brokers: x:1\nbridges: {a: {" + none + "}}":               "bridge a: BRIDGE_SOURCE_URL (",
		"bridges: [{name: a}]": "want a mapping of names to settings\",",
	} {
		code, _, stderr := call(t, "run", "--once", "--config", fleetFile(t, text))
		if code != exitSettings || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit code %d: %s", text, code, stderr)
		}
	}
}

// Without --once, a reload may bring bridges, and the log says so. With it, the process would never end.
func TestFleetWithoutBridges(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "fleet.yaml")
	if err := os.WriteFile(file, []byte("kafka_brokers: x:1\nbridges: {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	setenv(t, httpAddr, "off")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second) // else it would wait for a bridge
	log, ended := new(safeBuffer), make(chan int)
	code := execute(ctx, environ(t), []string{"run", "--once", "--config", file}, io.Discard, log)
	cancel()
	if code != exitSettings || !strings.Contains(log.String(), "has no bridges, so run --once has nothing to deliver") {
		t.Errorf("exit code %d: %s", code, log)
	}
	ctx, cancel = context.WithCancel(t.Context())
	go func() { ended <- execute(ctx, environ(t), []string{"run", "--config", file}, io.Discard, log) }()
	const warning = `"level":"WARN","msg":"the settings file has no bridges`
	await(t, "the warning", func() bool { return strings.Contains(log.String(), warning) })
	cancel()
	<-ended
}

// Bridges of a process share memory and claims, and send fewer requests; one alone does not.
func TestFleetShares(t *testing.T) {
	t.Parallel()
	setAll(t, map[string]string{
		"SOURCE_URL": "file://" + abs(t, "../../testdata/real-2020"), "KAFKA_BROKERS": "x:1", "NAME": "b",
	})
	c, err := environ(t).Load(true)
	if err != nil {
		t.Fatal(err)
	}
	log, shown := progress.ForMany(c, io.Discard)
	all := &bridges{shown: shown, memory: pipeline.NewBudget(1 << 20), claims: catalog.NewClaims()}
	one, err := all.create(c, 2)
	if err != nil {
		t.Fatal(err)
	}
	alone, err := newInstance(c, shape{bridges: 1}, log, shown)
	if err != nil {
		t.Fatal(err)
	}
	if o := one.options; o.Pace.Memory != all.memory || o.Topics.Claims != all.claims || !o.Pace.Frugal {
		t.Errorf("one of a fleet: %v, %v, %t", o.Pace.Memory, o.Topics.Claims, o.Pace.Frugal)
	}
	if o := alone.options; o.Pace.Memory != nil || o.Topics.Claims != nil || o.Pace.Frugal {
		t.Errorf("one alone: %v, %v, %t", o.Pace.Memory, o.Topics.Claims, o.Pace.Frugal)
	}
}
