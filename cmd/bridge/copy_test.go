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

// What stops run fails check, unless the bridge does not get there, or is behind it.
func TestCopyThatStopsRun(t *testing.T) {
	t.Parallel()
	clusterFor(t)
	var manifest, aside string
	copied(t, func(dir string) error {
		manifest = filepath.Join(dir, "idx/segments/2020/05/29/1600/meta.json")
		aside = filepath.Join(t.TempDir(), "aside")
		return os.Rename(manifest, aside)
	})
	const says = "copy          1 segment without a manifest in idx/, such as 2020/05/29/1600: run stops there\n"
	check := func(code int, status, settings string) {
		t.Helper()
		t.Run(status+settings, func(t *testing.T) {
			if name, value, is := strings.Cut(settings, "="); is {
				setenv(t, "BRIDGE_"+name, value)
			}
			if got, stdout, _ := call(t, "check"); got != code || !strings.Contains(stdout, status+says) {
				t.Errorf("exit code %d: %s", got, stdout)
			}
		})
	}
	const warning, failed = "warning  ", "failed   "
	check(exitOK, warning, "START=2020-05-29T19:00:00Z")
	check(exitOK, warning, "END_TIME=2020-05-29T14:00:00Z")
	check(exitFailed, failed, "")
	if code, _, stderr := call(t, "run", "--once"); code != exitFailed {
		t.Errorf("run: exit code %d: %s", code, stderr)
	}
	check(exitFailed, failed, "NAME=b")
	if err := os.Rename(aside, manifest); err != nil {
		t.Fatal(err)
	}
	runToEnd(t)
	if err := os.Rename(manifest, aside); err != nil {
		t.Fatal(err)
	}
	check(exitOK, warning, "")
}

// A manifest of a copy that is cut short says so to run and status, too.
func TestBrokenManifest(t *testing.T) {
	t.Parallel()
	clusterFor(t)
	copied(t, func(dir string) error {
		return os.WriteFile(filepath.Join(dir, "idx/segments/2020/05/29/1600/meta.json"), []byte(`{"begin":`), 0o600)
	})
	const says = "parsing idx/segments/2020/05/29/1600/meta.json: unexpected end of JSON input: copy the container"
	if code, _, stderr := call(t, "run", "--once"); code != exitFailed || !strings.Contains(stderr, says) {
		t.Errorf("run: exit code %d: %s", code, stderr)
	}
	if _, stdout, _ := call(t, "status"); !strings.Contains(stdout, "-> copy the container $blobchangefeed again\n") {
		t.Errorf("status: %s", stdout)
	}
}

// A copy of the feed that loses its newest segments after they were delivered looks like one of which all is delivered.
// Every verb says what check says, while the bridge runs and after it, until the copy has them. Retention, which
// deletes the oldest ones, is no reason.
func TestOlderCopy(t *testing.T) {
	t.Parallel()
	clusterFor(t)
	setAll(t, map[string]string{"HTTP_ADDR": "127.0.0.1:0", "LOG_FORMAT": "json", "DEBUG": "report_interval=100ms"})
	var feed string
	copied(t, func(dir string) error { feed = dir; return nil })
	runToEnd(t)
	lose := func(segment string) (back func()) {
		t.Helper()
		aside := t.TempDir()
		move := func(from, to string) {
			for _, tree := range []string{"idx/segments", "log/00"} {
				if err := os.MkdirAll(filepath.Join(to, filepath.Dir(filepath.Join(tree, segment))), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.Rename(filepath.Join(from, tree, segment), filepath.Join(to, tree, segment)); err != nil {
					t.Fatal(err)
				}
			}
		}
		move(feed, aside)
		return func() { move(aside, feed) }
	}
	const cause = "the feed has no segment 2020/05/29/2100, where the bridge is: this may be an older copy"
	const do = "if the account has more, copy the container $blobchangefeed again: "
	check := func(wrong bool) {
		t.Helper()
		for verb, code := range map[string]int{"check": exitFailed, "status --check": exitFailed, "run --once": exitOK} {
			if !wrong {
				code = exitOK
			}
			got, stdout, stderr := call(t, strings.Fields(verb)...)
			if all := stdout + stderr; got != code || strings.Contains(all, cause) != wrong ||
				strings.Contains(all, do) != wrong {
				t.Errorf("%s: exit code %d: %s", verb, got, all)
			}
		}
	}
	check(false)
	lose("2020/01/16/2100")
	check(false)
	back := []func(){lose("2020/05/29/2000"), lose("2020/05/29/2100")}
	check(true)
	warning := `"verdict":"degraded: ` + cause + `","hint":"` + do
	provoke(t, warning, []string{"run"})
	if _, stdout, _ := call(t, "status"); !strings.HasPrefix(stdout, "nobody is running: ") ||
		!strings.Contains(stdout, cause+"\n-> "+do) {
		t.Errorf("nobody runs: %s", stdout)
	}
	for _, back := range back {
		back()
	}
	runToEnd(t)
	check(false)
}
