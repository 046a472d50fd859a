package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"blobfeed/internal/testing/fakebroker"
)

// With --config, a verb takes its settings from a file, and config prints them as one that does the same.
func TestSettingsFromFile(t *testing.T) {
	t.Parallel()
	fake := fakebroker.New(t)
	file := filepath.Join(t.TempDir(), "bridge.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("name: file\nsource:\n  url: file://" + abs(t, "../../testdata/real-2020") +
		"\nkafka: {brokers: ['" + fake.ListenAddrs()[0] + "']}\nhttp_addr: 'off'\noffsets_leases: 2\n")
	if code, _, log := call(t, "run", "--once", "--config", file); code != exitOK ||
		!strings.Contains(log, `"name":"file"`) {
		t.Fatalf("exit code %d: %s", code, log)
	}
	setenv(t, "BRIDGE_OFFSETS_LEASES", "4")
	setenv(t, "BRIDGE_HTTP_ADDR", "off")
	if code, _, log := call(t, "run", "--once", "--config", file); code != exitOK ||
		!strings.Contains(log, `and wins","settings":["BRIDGE_OFFSETS_LEASES"]}`) {
		t.Errorf("exit code %d: %s", code, log)
	}
	setenv(t, "BRIDGE_OFFSETS_LEASES", "")
	if code, _, stderr := call(t, "healthcheck", "--config", file); code != exitSettings ||
		!strings.Contains(stderr, "no instance can answer") {
		t.Errorf("healthcheck: exit code %d: %s", code, stderr)
	}
	missing := file + ".old"
	if code, _, stderr := call(t, "healthcheck", "--config", missing); code != exitSettings ||
		!strings.Contains(stderr, "reading the settings file: stat "+missing+": no such file or directory: correct") {
		t.Errorf("healthcheck without its file: exit code %d: %s", code, stderr)
	}
	code, printed, stderr := call(t, "config", "--output", "yaml", "--config", file)
	if code != exitOK {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	write(printed)
	if code, out, _ := call(t, "status", "--config", file); code != exitOK || !strings.Contains(out, "file at ") {
		t.Errorf("with the printed file: exit code %d: %s", code, out)
	}
	write("nam: x\n")
	if code, _, stderr := call(t, "run", "--config", file); code != exitSettings ||
		!strings.Contains(stderr, file+":1: nam: unknown setting; did you mean name?") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}
