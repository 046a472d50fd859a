package main

import (
	"os"
	"strings"
	"testing"
)

// While no record is written, the error for a changed setting names the command after which the setting is taken.
func TestChangedSettingBeforeTheFirstRecord(t *testing.T) {
	t.Parallel()
	clusterFor(t)
	setenv(t, "BRIDGE_CONTAINERS", "no-such-container")
	runToEnd(t)
	setenv(t, "BRIDGE_CONTAINERS", "")
	setenv(t, "BRIDGE_ENVELOPE", "bare")
	const says = "BRIDGE_ENVELOPE=bare, but the bridge was first started with wrapped: set it back, or, since no " +
		"record is written yet, stop the bridge, run BRIDGE_NAME=b bridge reset --yes, and start it again"
	for verb, want := range map[string]int{"run": exitSettings, "run --once": exitSettings, "check": exitFailed} {
		if code, stdout, stderr := call(t, strings.Fields(verb)...); code != want ||
			!strings.Contains(stdout+stderr, says) {
			t.Errorf("%s: exit code %d: %s%s", verb, code, stdout, stderr)
		}
	}
	if code, _, stderr := call(t, "reset", "--yes"); code != exitOK {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	runToEnd(t)
	if n := statusOf(t).Totals; n.Emitted != 717 {
		t.Errorf("%+v", n)
	}
}

// A feed's directory may move: with a link at its former path, the bridge continues.
func TestMovedDirectory(t *testing.T) {
	t.Parallel()
	clusterFor(t)
	var feed string
	copied(t, func(dir string) error { feed = dir; return nil })
	runToEnd(t)
	moved := t.TempDir() + "/moved"
	if err := os.Rename(feed, moved); err != nil {
		t.Fatal(err)
	}
	setenv(t, "BRIDGE_SOURCE_URL", "file://"+moved)
	code, _, stderr := call(t, "run", "--once")
	if code != exitSettings || !strings.Contains(stderr, "(ln -s "+moved+" "+feed+")") {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	if err := os.Symlink(moved, feed); err != nil {
		t.Fatal(err)
	}
	setenv(t, "BRIDGE_SOURCE_URL", "file://"+feed)
	runToEnd(t)
	if n := statusOf(t).Totals.Read; n != 717 {
		t.Errorf("%d events read, want 717", n)
	}
}
