package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// fleetFile writes a settings file with bridges.
func fleetFile(t *testing.T, text string) (path string) {
	t.Helper()
	setenv(t, "BRIDGE_NAME", "")
	path = filepath.Join(t.TempDir(), "fleet.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// config prints the common settings once, and of each bridge what differs; a bridge that is chosen as a single one.
func TestConfigOfFleet(t *testing.T) {
	t.Parallel()
	file := fleetFile(t, `
kafka_brokers: [broker:9092]
poll_interval: 7s
bridges:
  photos: {source_url: "file:///photos", topic: photos}
  music: {source_url: "file:///music", topic: music, source_key: hunter2, source_auth: shared_key}
`)
	code, out, stderr := call(t, "config", "--config", file)
	if code != exitOK || strings.Count(out, "BRIDGE_POLL_INTERVAL ") != 1 || strings.Contains(out, "hunter2") {
		t.Errorf("exit code %d: %s%s", code, out, stderr)
	}
	_, photos, ok := strings.Cut(out, "\nbridge photos\n")
	if lines := strings.Split(photos, "\n"); !ok || len(lines) != 4 || !strings.HasPrefix(lines[0], "BRIDGE_NAME ") ||
		!strings.HasPrefix(lines[1], "BRIDGE_SOURCE_URL ") || !strings.HasPrefix(lines[2], "BRIDGE_TOPIC ") {
		t.Errorf("want name, source and topic: %s", photos)
	}
	code, out, _ = call(t, "config", "--config", file, "--output", "json")
	if code != exitOK ||
		!strings.Contains(out, `{"bridge":"music","name":"BRIDGE_SOURCE_KEY","value":"(set)","from":"file `) {
		t.Errorf("exit code %d: %s", code, out)
	}
	if code, _, stderr := call(t, "config", "--config", file, "--output", "yaml"); code != exitUsage ||
		!strings.Contains(stderr, "choose one of the bridges of "+file+" with BRIDGE_NAME") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	setenv(t, "BRIDGE_NAME", "photos")
	if code, out, _ := call(t, "config", "--config", file, "--output", "yaml"); code != exitOK ||
		!strings.Contains(out, "name: photos\n") || !strings.Contains(out, "\n  url: file:///photos") {
		t.Errorf("exit code %d: %s", code, out)
	}
	file = fleetFile(t, "bridges: {a: {start: never}}")
	if code, _, stderr := call(t, "config", "--config", file); code != exitSettings ||
		!strings.Contains(stderr, "bridge a: BRIDGE_START") && !strings.Contains(stderr, "BRIDGE_START (") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}
