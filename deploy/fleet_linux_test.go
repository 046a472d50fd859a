package deploy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"blobfeed/internal/testing/fakebroker"
)

// The program follows its settings file as Kubernetes replaces a mounted ConfigMap: by another target of the symlink
// above it. A FIFO in its place neither hangs the reload nor stops a bridge.
func TestFleetFollowsItsFile(t *testing.T) {
	t.Parallel()
	dir, feed, brokers := t.TempDir(), small(t), fakebroker.New(t).ListenAddrs()[0]
	path := func(version int) string { return filepath.Join(dir, fmt.Sprint("..", version), "fleet.yaml") }
	swap := func(version int) {
		t.Helper()
		next, data := filepath.Join(dir, "..next"), filepath.Join(dir, "..data")
		if err := os.Symlink(filepath.Dir(path(version)), next); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(next, data); err != nil {
			t.Fatal(err)
		}
	}
	for version, names := range [][]string{{"one", "two"}, nil, {"one", "three"}} {
		err := os.Mkdir(filepath.Dir(path(version)), 0o700)
		text := fmt.Sprintf("kafka_brokers: ['%s']\nhttp_addr: '127.0.0.1:0'\nsource_url: '%s'\noffsets_leases: 1\n"+
			"bridges:\n", brokers, feed)
		for _, name := range names {
			text += fmt.Sprintf("  %s: {topic: %[1]s}\n", name)
		}
		switch {
		case err != nil:
		case names == nil:
			err = syscall.Mkfifo(path(version), 0o600)
		default:
			err = os.WriteFile(path(version), []byte(text), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	swap(0)
	mounted := filepath.Join(dir, "fleet.yaml")
	if err := os.Symlink("..data/fleet.yaml", mounted); err != nil {
		t.Fatal(err)
	}
	p := start(t, program, nil, "run", "--config", mounted)
	base := p.address(t)
	ready := func(names ...string) func() bool {
		return func() bool {
			var s struct {
				Bridges []struct {
					Name  string
					Ready bool
				}
			}
			if err := json.Unmarshal([]byte(get(base+"/status")), &s); err != nil || len(s.Bridges) != len(names) {
				return false
			}
			for _, b := range s.Bridges {
				if !b.Ready || !slices.Contains(names, b.Name) {
					return false
				}
			}
			return true
		}
	}
	p.until(t, "both bridges", ready("one", "two"))
	swap(1)
	if err := p.Process.Signal(syscall.SIGHUP); err != nil { // it would take another 10 s by itself
		t.Fatal(err)
	}
	p.until(t, "the FIFO", func() bool { return strings.Contains(p.log.String(), "not a regular file") })
	if !ready("one", "two")() {
		t.Errorf("a FIFO stops a bridge:\n%.3000s", p.log)
	}
	swap(2) // and no signal
	p.until(t, "the other bridge", ready("one", "three"))
	if n := strings.Count(p.log.String(), `"msg":"starting","bridge":"one"`); n != 1 {
		t.Errorf("the bridge that stays has started %d times:\n%.3000s", n, p.log)
	}
	p.within(t, attackLimit)
	p.stop(t)
}

// A process with many bridges that fail answers probes briefly, and other requests whole, also scrapes side by side.
func TestManyFailingBridges(t *testing.T) {
	const bridges = 1000
	file := filepath.Join(t.TempDir(), "fleet.yaml")
	text := "kafka_brokers: ['127.0.0.1:1']\nhttp_addr: '127.0.0.1:0'\nsource_url: '" + small(t) + "'\nbridges:\n"
	for i := range bridges {
		text += fmt.Sprintf("  bridge-%04d: {topic: bridge-%[1]d}\n", i)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p := start(t, program, nil, "run", "--config", file)
	base := p.address(t)
	p.until(t, "the reasons", func() bool {
		return strings.Contains(get(base+"/readyz"), fmt.Sprintf("\n%d more bridges have reasons", bridges-100))
	})
	side := 16 // as many as are answered at a time
	p.until(t, "a whole scrape beside others", func() bool {
		var whole atomic.Int32
		var scrapes sync.WaitGroup
		before := spent(t, p.Cmd)
		for range side {
			scrapes.Go(func() { // by the last metric of each
				if strings.Count(get(base+"/metrics"), "\nblobfeed_watchdog_timeout_seconds{") == bridges {
					whole.Add(1)
				}
			})
		}
		scrapes.Wait()
		took := spent(t, p.Cmd) - before
		t.Logf("%d of %d are whole, for %s of processor time", whole.Load(), side, took)
		// With a result of its own, each makes that 15 s in all, in place of 3.
		if took >= 8*time.Second {
			t.Errorf("%d scrapes side by side take %s of processor time", side, took)
			return true
		}
		// The server cuts an answer that takes longer than 5 s. A busy machine writes fewer answers in that time.
		side = max(2, side/2)
		return whole.Load() > 0
	})
	p.until(t, "the whole status", func() bool { return strings.Count(get(base+"/status"), `"lag":{`) == bridges })
	p.within(t, attackLimit+bridges*300<<10)
	p.stop(t)
}

// spent returns the processor time of a program that runs.
func spent(t *testing.T, cmd *exec.Cmd) time.Duration {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ = bytes.Cut(text, []byte(") ")) // behind the name
	fields := strings.Fields(string(text))
	ticks := 0
	for _, field := range fields[11:13] { // of the user and of the system, in hundredths of a second
		n, err := strconv.Atoi(field)
		if err != nil {
			t.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}
