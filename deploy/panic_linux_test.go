package deploy

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"blobfeed/internal/testing/fakebroker"
	"blobfeed/internal/testing/feedsim"
)

// A panic in any kind of goroutine of a bridge ends nothing but this bridge: its stack is logged once, it is counted,
// and the bridge starts again and delivers each event once. The other bridge of the process delivers, too.
func TestPanics(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the program once more, and runs it for each kind of goroutine")
	}
	mutant := filepath.Join(t.TempDir(), "bridge")
	build := exec.Command("go", "build", "-tags", "mutation", "-o", mutant, "blobfeed/cmd/bridge")
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the program: %v\n%s", err, text)
	}
	feed := t.TempDir()
	spec := feedsim.Spec{Shards: 2, EventsPerSegment: 60, Segments: 4}
	if err := feedsim.Write(t.Context(), feedsim.Dir(feed), spec, nil); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{
		"bridge", "group", "worker", "watch", "view", "refresh", "end", "feed", "look", "shard", "ops",
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			c := fakebroker.New(t)
			file := filepath.Join(t.TempDir(), "fleet.yaml")
			text := fmt.Sprintf("kafka_brokers: ['%s']\nhttp_addr: '127.0.0.1:0'\nsource_url: 'file://%s'\n"+
				"offsets_leases: 2\npoll_interval: 50ms\ncommit_interval: 50ms\nsession_timeout: 6s\n"+
				"bridges: {one: {topic: one}, two: {topic: two}}\n", c.ListenAddrs()[0], feed)
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			env := []string{"MUTATION_PANIC=" + kind}
			if kind == "shard" { // else the segments are so small that they go into bundles
				env = append(env, "BRIDGE_DEBUG=bundle_bytes=0")
			}
			p := start(t, mutant, env, "run", "--config", file)
			base := p.address(t)
			p.until(t, "the panic", func() bool { return strings.Contains(p.log.String(), "planted in "+kind) })
			p.until(t, "all events of both", func() bool {
				var s struct {
					Bridges []struct{ Events int }
				}
				err := json.Unmarshal([]byte(get(base+"/status")), &s)
				return err == nil && len(s.Bridges) == 2 && s.Bridges[0].Events == 240 && s.Bridges[1].Events == 240
			})
			metrics := get(base + "/metrics")
			log := p.log.String()
			restarts := 1
			if kind == "ops" { // what reports on a bridge, which runs on
				restarts = 0
			}
			if strings.Count(log, `"stack":["`) != 1 ||
				strings.Count(log, "the bridge has failed and starts again") != restarts {
				t.Errorf("the log:\n%.5000s", log)
			}
			if n := len(regexp.MustCompile(`errors_total\{bridge="(one|two)",class="panic"\} 1\n`).
				FindAllString(metrics, -1)); n != 1 {
				t.Errorf("%d bridges count a panic", n)
			}
			p.within(t, attackLimit)
			p.stop(t)
			for _, name := range []string{"one", "two"} { // each event once, and the markers
				verify := exec.Command(program, "verify", "--feed", "--config", file)
				verify.Env = append(os.Environ(), "BRIDGE_NAME="+name)
				if out, err := verify.CombinedOutput(); err != nil {
					t.Errorf("verify %s: %v\n%.2000s", name, err, out)
				}
			}
		})
	}
}
