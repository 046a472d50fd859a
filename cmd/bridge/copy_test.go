package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"blobfeed/internal/testing/feedsim"
)

// An incomplete copy of a feed ends run and tail with what check says. When the copy is complete, run delivers all of
// it.
func TestIncompleteCopy(t *testing.T) {
	t.Parallel()
	clusterFor(t)
	var feed, aside string
	copied(t, func(dir string) error {
		feed, aside = dir, t.TempDir()
		return os.Rename(filepath.Join(dir, "log"), filepath.Join(aside, "log"))
	})
	const says, do = "the copy is incomplete: segment 2020/01/16/2100 is finalized, and none of the 1 shards that " +
		"its manifest names has a chunk", "copy the container $blobchangefeed whole"
	for _, verb := range []string{"run --once", "tail --from earliest --once", "check",
		"dump --segment 2020/01/16/2100"} {
		code, stdout, stderr := call(t, strings.Fields(verb)...)
		if all := stdout + stderr; code != exitFailed || !strings.Contains(all, says) || !strings.Contains(all, do) {
			t.Errorf("%s: exit code %d: %s", verb, code, all)
		}
	}
	if err := os.Rename(filepath.Join(aside, "log"), filepath.Join(feed, "log")); err != nil {
		t.Fatal(err)
	}
	runToEnd(t)
	if n := statusOf(t).Totals.Read; n != 717 {
		t.Errorf("%d events read, want 717", n)
	}
}

// A shard without chunks may be one without events, or a part of the feed that was not copied: run and check warn.
func TestCopyWithoutAShard(t *testing.T) {
	t.Parallel()
	clusterFor(t)
	dir := t.TempDir()
	spec := feedsim.Spec{Segments: 2, Shards: 3, EventsPerSegment: 60}
	if err := feedsim.Write(t.Context(), feedsim.Dir(dir), spec, nil); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(dir, "log/01/2026/01/01/0000")); err != nil {
		t.Fatal(err)
	}
	setenv(t, "BRIDGE_SOURCE_URL", "file://"+dir)
	const says = "the manifest names log/01/2026/01/01/0000/, and the copy of the feed has no chunk there"
	for _, verb := range []string{"check", "run --once"} {
		code, stdout, stderr := call(t, strings.Fields(verb)...)
		if all := stdout + stderr; code != exitOK || !strings.Contains(all, says) {
			t.Errorf("%s: exit code %d: %s", verb, code, all)
		}
	}
}
