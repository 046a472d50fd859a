package main

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"blobfeed/internal/config"
	"blobfeed/internal/status"
	"blobfeed/internal/testing/fakebroker"
)

func call(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	env := environ(t)
	code = execute(context.Background(), env, args, &out, &errs)
	for _, name := range config.SecretNames() { // those of files, too: they are in the environment now
		if secret := env[name]; secret != "" && strings.Contains(out.String()+errs.String(), secret) {
			t.Errorf("bridge %s shows %s", args, name)
		}
	}
	return code, out.String(), errs.String()
}

func abs(t *testing.T, path string) string {
	t.Helper()
	p, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

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
	setAll(t, map[string]string{
		"NAME": "b", "SOURCE_URL": "file://" + abs(t, "../../testdata/real-2020"),
		"KAFKA_BROKERS": strings.Join(c.ListenAddrs(), ","), "TOPIC": changes, "EVENTS": "all",
		"TOPIC_PARTITIONS": "4", "TOPIC_REPLICATION": "1", "OFFSETS_LEASES": "4", "COMMIT_INTERVAL": "50ms",
		"POLL_INTERVAL": "50ms", "SESSION_TIMEOUT": "6s",
	})
	return c
}

func runToEnd(t *testing.T) {
	t.Helper()
	if code, _, stderr := call(t, "run", "--once"); code != exitOK {
		t.Fatalf("run --once: exit code %d: %s", code, stderr)
	}
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

// environments are those of the tests that run, by name.
var environments = struct {
	sync.Mutex
	of map[string]config.Env
}{of: map[string]config.Env{}}

// setenv sets a variable of the program for a test and its subtests, as t.Setenv does, which lets no other test run
// meanwhile.
func setenv(t *testing.T, name, value string) {
	t.Helper()
	environments.Lock()
	defer environments.Unlock()
	if environments.of[t.Name()] == nil {
		environments.of[t.Name()] = config.Env{}
		t.Cleanup(func() {
			environments.Lock()
			defer environments.Unlock()
			delete(environments.of, t.Name())
		})
	}
	environments.of[t.Name()][name] = value
}

// environ returns the variables of a test: no other ones, so that those of whoever runs it change nothing.
func environ(t *testing.T) config.Env {
	environments.Lock()
	defer environments.Unlock()
	env := config.Env{}
	for i, char := range t.Name() + "/" {
		if char == '/' {
			maps.Copy(env, environments.of[t.Name()[:i]])
		}
	}
	return env
}

func setAll(t *testing.T, settings map[string]string) {
	t.Helper()
	for name, value := range settings {
		setenv(t, config.Prefix+"_"+name, value)
	}
}
