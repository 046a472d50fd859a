package deploy

import (
	"bytes"
	"debug/buildinfo"
	"debug/elf"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"blobfeed/internal/testing/fakebroker"
	"blobfeed/internal/testing/feedsim"
)

// The program is static, names no path of the machine that built it, knows its version, and holds no decoder
// that nobody mends any more.
func TestBinary(t *testing.T) {
	f, err := elf.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if slices.ContainsFunc(f.Progs,
		func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP || p.Type == elf.PT_DYNAMIC }) {
		t.Error("the program is linked dynamically")
	}
	content, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	if len(content) > 28_000_000 { // with an exporter of OpenTelemetry it had 10 MB more
		t.Errorf("the program has %.1f MB", float64(len(content))/1e6)
	}
	here, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{here + "/cmd", filepath.Join(home, "go")} {
		if bytes.Contains(content, []byte(path)) {
			t.Errorf("the program names %s", path)
		}
	}
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range info.Deps {
		if strings.HasPrefix(m.Path, "github.com/hamba/avro") { // archived, with open advisories
			t.Errorf("the program holds %s", m.Path)
		}
	}
	out, err := exec.Command(program, "version").CombinedOutput()
	if err != nil || !strings.HasPrefix(string(out), "bridge 1.2.3 ") {
		t.Errorf("%s, %v", out, err)
	}
	for _, verb := range []string{"run", "healthcheck", "check"} { // what Dockerfile, chart and unit call
		if out, err := exec.Command(program, verb, "--help").CombinedOutput(); err != nil {
			t.Errorf("bridge %s --help: %v\n%s", verb, err, out)
		}
	}
}

// A program that has caught up gives its memory back within a minute, what lies in pools included.
func TestIdleMemory(t *testing.T) {
	t.Parallel()
	feed := t.TempDir()
	spec := feedsim.Spec{Shards: 2, EventsPerSegment: 50_000, Segments: 2}
	if err := feedsim.Write(t.Context(), feedsim.Dir(feed), spec, nil); err != nil {
		t.Fatal(err)
	}
	p := start(t, program, []string{"BRIDGE_SOURCE_URL=file://" + feed, "BRIDGE_HTTP_ADDR=127.0.0.1:0",
		"BRIDGE_KAFKA_BROKERS=" + fakebroker.New(t).ListenAddrs()[0]}, "run")
	base := p.address(t)
	p.until(t, "the catch-up", func() bool { return strings.Contains(get(base+"/status"), `"code":"up_to_date"`) })
	resident, caughtUp := int64(0), time.Now()
	p.until(t, "the memory", func() bool {
		resident, _ = memoryOf(p.Cmd, "VmRSS:")
		return resident < 33<<20
	})
	t.Logf("%d MiB after %s", resident>>20, time.Since(caughtUp))
	p.stop(t)
}

// The program does its work in a root of its own where nothing is but itself and a feed, which it can't write, as the
// user of the image: no shell, no library, no time zones, no /tmp, no /etc.
func TestReadOnlyRoot(t *testing.T) {
	t.Parallel()
	brokers := fakebroker.New(t)
	root := t.TempDir()
	content, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "bridge"), content, 0o555); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(filepath.Join(root, "feed"), os.DirFS("../testdata/real-2020")); err != nil {
		t.Fatal(err)
	}
	var dirs []string
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			dirs = append(dirs, path)
		} else if err == nil {
			err = os.Chmod(path, 0o555)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range dirs {
		if err := os.Chmod(dir, 0o555); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.Chmod(dir, 0o755) }) // or it can't be removed
	}
	before := list(t, root)
	for _, args := range [][]string{{"check"}, {"run", "--once"}} {
		cmd := exec.CommandContext(t.Context(), "/bridge", args...)
		cmd.Dir, cmd.SysProcAttr = "/", confined(root)
		cmd.Env = []string{
			"BRIDGE_SOURCE_URL=file:///feed",
			"BRIDGE_EVENTS=all",
			"BRIDGE_KAFKA_BROKERS=" + strings.Join(brokers.ListenAddrs(), ","),
		}
		cmd.WaitDelay = time.Minute
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("bridge %s: %v\n%s", args, err, out)
		}
		if args[0] == "run" && !strings.Contains(string(out), `"msg":"stopped","events":7`) {
			t.Errorf("bridge run: %s", out)
		}
	}
	if after := list(t, root); !slices.Equal(before, after) {
		t.Errorf("the disk has changed: %q, was %q", after, before)
	}
}

func list(t *testing.T, root string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		names = append(names, path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}
