package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/sr/srfake"
)

// The demo does Avro, too, with a registry of its own.
func TestDemoAvro(t *testing.T) {
	t.Parallel()
	code, stdout, stderr := call(t, "demo", "--port", "0", "--for", "3s", "--format", "avro", "--envelope", "enriched")
	for _, want := range []string{
		"/subjects/blob-changes-value/versions/latest", "value  schema ", "resolved    schema ", " events/s).",
	} {
		if !strings.Contains(stdout, want) {
			t.Errorf("%q is not shown", want)
		}
	}
	if code != 0 {
		t.Errorf("exit code %d: %s%s", code, stdout, stderr)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, taken, _ := net.SplitHostPort(l.Addr().String())
	if code, _, stderr := call(t, "demo", "--for", "1s", "--port", taken); code != exitUsage ||
		!strings.Contains(stderr, taken) {
		t.Errorf("a port that is taken: exit code %d: %s", code, stderr)
	}
	if code, _, stderr := call(t, "demo", "--for", "1s", "--format", "avro", "--envelope", "row"); code != exitUsage ||
		!strings.Contains(stderr, "envelope=row is not supported with format=avro") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

// full is a full disk.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

// Output that did not arrive is a failure, also of the verbs that print line by line.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	clusterFor(t)
	for _, args := range [][]string{{"help"}, {"find", "container0/blob0"}, {"config"}} {
		var stderr strings.Builder
		code := execute(t.Context(), environ(t), args, full{}, &stderr)
		if code != exitFailed || strings.Count(stderr.String(), "no space left") != 1 {
			t.Errorf("%s: exit code %d: %s", args, code, stderr.String())
		}
	}
}

// The schemas to register by hand are printed as a registry takes them.
func TestConfigSchemas(t *testing.T) {
	t.Parallel()
	setenv(t, "BRIDGE_SOURCE_URL", "file:///feed")
	setenv(t, "BRIDGE_FORMAT", "avro")
	setenv(t, "BRIDGE_TOPIC", "blobs")
	setenv(t, "BRIDGE_RESOLVED_TO", "topic")
	code, stdout, stderr := call(t, "config", "--format", "schemas")
	var subjects []string
	for d := json.NewDecoder(strings.NewReader(stdout)); d.More(); {
		var doc struct{ Subject, Schema string }
		if err := d.Decode(&doc); err != nil || !json.Valid([]byte(doc.Schema)) {
			t.Fatalf("%v: %s", err, stdout)
		}
		subjects = append(subjects, doc.Subject)
	}
	if code != 0 || strings.Join(subjects, " ") != "blobs-key blobs-value blobs.resolved-value" {
		t.Errorf("exit code %d, %v %s", code, subjects, stderr)
	}
	setAll(t, map[string]string{"FORMAT": "json", "RESOLVED_TO": ""})
	if code, stdout, stderr := call(t, "config", "--format", "schemas"); code != exitOK || stdout != "" ||
		!strings.Contains(stderr, "need no schemas") {
		t.Errorf("with JSON: exit code %d: %s%s", code, stdout, stderr)
	}
	setenv(t, "BRIDGE_TOPIC", "{container}")
	if code, _, stderr := call(t, "config", "--format", "schemas"); code != exitSettings ||
		!strings.Contains(stderr, "BRIDGE_TOPIC") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

// Verify reads Avro with the schemas that are there, and leaves the registry as it is whatever it is asked.
func TestVerifyRegistersNothing(t *testing.T) {
	t.Parallel()
	registry := srfake.New()
	defer registry.Close()
	schemas := func() string {
		t.Helper()
		resp, err := http.Get(registry.URL() + "/schemas")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(body)
	}
	cl := delivered(t, "../../testdata/real-2020", "FORMAT=avro", "REGISTRY_URL="+registry.URL())
	produce(t, cl, "other", readBy(t, cl.Opts(), written)[:1])
	before := schemas()
	if code, stdout, stderr := call(t, "verify", "--feed"); code != exitOK {
		t.Errorf("exit code %d: %s%s", code, stdout, stderr)
	}
	for topic, want := range map[string]struct {
		code int
		says string
	}{
		"nosuch": {exitFailed, "opening topic nosuch: it does not exist"},
		"other":  {exitSettings, "subject other-key in the registry does not have the schema"},
	} {
		if code, stdout, stderr := call(t, "verify", "--feed", "--topic", topic); code != want.code ||
			!strings.Contains(stderr, want.says) ||
			strings.Contains(stderr, "AUTO_REGISTER") {
			t.Errorf("%s: exit code %d: %s%s", topic, code, stdout, stderr)
		}
	}
	if after := schemas(); after != before {
		t.Errorf("the registry has %s, had %s", after, before)
	}
}

// A container whose topic has no schema in the registry does not end the instance: somebody may register the
// schema yet. The status says what is missing.
func TestContainerWithoutSchema(t *testing.T) {
	t.Parallel()
	registry := srfake.New()
	defer registry.Close()
	clusterFor(t)
	setAll(t, map[string]string{
		"TOPIC": "{container}", "FORMAT": "avro", "REGISTRY_URL": registry.URL(), "REGISTRY_AUTO_REGISTER": "false",
	})
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan int, 1)
	var stderr safeBuffer // the log and the last error come from two goroutines
	go func() { ended <- execute(ctx, environ(t), []string{"run"}, io.Discard, &stderr) }()
	await(t, "the status says so", func() bool {
		code, stdout, _ := call(t, "status")
		return code == exitOK && strings.Contains(stdout, "set BRIDGE_REGISTRY_AUTO_REGISTER=true")
	})
	stop()
	if code := <-ended; !strings.Contains(stderr.String(), "stopped by a second signal") {
		t.Errorf("it ended by itself, with exit code %d: %s", code, &stderr)
	}
}

// event_time has one type in all of a topic: a reader by the latest schema would take millis for micros.
func TestAvroTimestampsAreFrozen(t *testing.T) {
	t.Parallel()
	registry := srfake.New()
	defer registry.Close()
	clusterFor(t)
	setenv(t, "BRIDGE_FORMAT", "avro")
	setenv(t, "BRIDGE_REGISTRY_URL", registry.URL())
	runToEnd(t)
	setenv(t, "BRIDGE_AVRO_TIMESTAMPS", "millis")
	code, _, stderr := call(t, "run", "--once")
	if code != exitSettings ||
		!strings.Contains(stderr, "BRIDGE_AVRO_TIMESTAMPS=millis, but records were written with micros") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	setenv(t, "BRIDGE_AVRO_TIMESTAMPS", "micros")
	setenv(t, "BRIDGE_FORMAT", "json") // the format of keys follows it
	code, _, stderr = call(t, "run", "--once")
	if code != exitSettings || !strings.Contains(stderr, "BRIDGE_FORMAT=json, but records were written with avro") ||
		strings.Contains(stderr, "BRIDGE_KEY_FORMAT") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}
