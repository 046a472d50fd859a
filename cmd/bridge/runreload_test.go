package main

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/internal/ops"
	"blobfeed/internal/testing/fakebroker"
)

// A reload starts, restarts and stops bridges, and leaves alone those that have not changed or have problems.
func TestFleetReload(t *testing.T) {
	setenv(t, "BRIDGE_DEBUG", "log_repeat=0s")
	c := fakebroker.New(t)
	file := fleetOf(t, c, "http_addr: '127.0.0.1:0'")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	head, members, _ := strings.Cut(string(text), "  photos:")
	photos, members, _ := strings.Cut(members, "\n")
	sim, _, _ := strings.Cut(members, "\n")
	base, log, stop := background(t, file)
	ready := func(name string) func() bool { return func() bool { return listed(t, base, name).Ready } }
	await(t, "photos", ready("photos"))
	await(t, "sim", ready("sim"))
	reloads := 0
	reload := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		reloads++
		await(t, "the reload", func() bool {
			return strings.Count(log.String(), `"msg":"settings reloaded"`)+
				strings.Count(log.String(), `"msg":"the settings file is rejected; the bridges run on"`) == reloads
		})
	}
	shown := func(want ...string) { // on the page and in the metrics
		t.Helper()
		var s ops.FleetStatus
		_, body := get(t, base+"/status")
		err := json.Unmarshal([]byte(body), &s)
		if err != nil || s.Reload == nil || len(s.Reload.Problems) != len(want) {
			t.Fatalf("%v: %s", err, body)
		}
		for i, problem := range s.Reload.Problems {
			if !strings.Contains(problem.Cause, want[i]) || strings.Contains(problem.Cause, "set it back") {
				t.Errorf("%q, want %q", problem, want[i])
			}
		}
		successful := "\nblobfeed_config_last_reload_successful 1\n"
		if len(want) > 0 {
			successful = "\nblobfeed_config_last_reload_successful 0\n"
		}
		if _, body := get(t, base+"/metrics"); !strings.Contains(body, successful) {
			t.Errorf("the metrics lack %s", successful)
		}
	}
	started := func(name string) int { return strings.Count(log.String(), `"msg":"starting","bridge":"`+name+`"`) }

	// One with problems runs on, one is gone, one is new.
	late := "\n  late: " + strings.Replace(sim[len("  sim: "):], "topic: sim", "topic: late", 1)
	reload(head + "  photos: {topic: photos, poll_interval: never}\n" + sim + late + "\n  worse: {start: never}\n")
	await(t, "late", ready("late"))
	if listed(t, base, "broken").Name != "" || listed(t, base, "worse").Name != "" ||
		!ready("photos")() || !ready("sim")() {
		t.Errorf("%s", log)
	}
	for _, want := range []string{
		`"added":1,"changed":0,"removed":1,"rejected":2}`, `"bridge":"photos","error":"BRIDGE_POLL_INTERVAL`,
		`"bridge":"worse","error":"`,
	} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log lacks %s", want)
		}
	}
	shown("bridge photos: BRIDGE_POLL_INTERVAL", "bridge worse: ")
	// A setting that cannot change while records exist is rejected before the bridge stops.
	reload(head + "  photos:" + strings.Replace(photos, "events: all", "events: all, key_format: string", 1) + "\n" +
		sim + late + "\n")
	shown("bridge photos: BRIDGE_KEY_FORMAT=string, but records were written with")
	if started("photos") != 1 || !ready("photos")() {
		t.Errorf("the bridge has stopped: %s", log)
	}
	_, out, _ := call(t, "status", "--all", "--config", file)
	if !regexp.MustCompile(`\nphotos .* up to date\n +its settings in the file are rejected: BRIDGE_KEY_FORMAT=string, but `+
		`.*\n +-> set it back.*\nsim .* up to date\n`).MatchString(out) || strings.Count(out, "rejected") != 1 {
		t.Errorf("status --all: %s", out)
	}
	// A file that cannot be read changes nothing.
	reload("bridges: [")
	shown("fleet.yaml:1: the YAML is not valid")
	reload("kafka_brokers: x:1\n")
	shown("fleet.yaml has no bridges: list them under bridges")
	if !ready("photos")() || !ready("sim")() || !ready("late")() {
		t.Errorf("%s", log)
	}
	// One has changed.
	reload(strings.Replace(head, "127.0.0.1:0", "127.0.0.1:1", 1) + "  photos:" + photos + "\n" +
		strings.Replace(sim, "topic: sim", "topic: sim, poll_interval: 70ms", 1) + late + "\n")
	await(t, "sim", ready("sim"))
	shown()
	if started("photos") != 1 || started("sim") != 2 || started("late") != 1 ||
		!strings.Contains(log.String(), `"added":0,"changed":1,"removed":0,"rejected":0}`) ||
		!strings.Contains(log.String(), `need a restart of the process","reload":5,"settings":["HTTP_ADDR"]`) {
		t.Errorf("%s", log)
	}
	data := slices.DeleteFunc(read(t, c, "sim"), func(r *kgo.Record) bool { return r.Key == nil })
	if len(data) != 591 {
		t.Errorf("%d records of sim, want each once", len(data))
	}
	stop()
}

// A reload that is rejected is logged each time, with what run would print, although the log folds what repeats.
func TestFleetReloadRejected(t *testing.T) {
	c := fakebroker.New(t)
	file := fleetOf(t, c, "http_addr: '127.0.0.1:0'")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	_, log, stop := background(t, file)
	reloads := 0
	reload := func() (lines []string) {
		t.Helper()
		if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		reloads++
		await(t, "the reload", func() bool {
			all := strings.Split(log.String(), "\n")
			lines = slices.DeleteFunc(all, func(line string) bool {
				return !strings.Contains(line, fmt.Sprintf(`"reload":%d,`, reloads))
			})
			return len(lines) > 0 && (strings.Contains(lines[len(lines)-1], "settings reloaded") ||
				strings.Contains(lines[0], "the settings file is rejected"))
		})
		return lines
	}
	for bad, want := range map[string]string{
		"bridges:\n\tphotos: {}\n": "fleet.yaml:2: ",
		strings.Replace(string(text), "bridges:", "bridge:", 1): ": bridge: unknown group of settings; " +
			"did you mean bridges?",
		"": "reading the settings file: ", // deleted
	} {
		if err = os.WriteFile(file, []byte(bad), 0o600); bad == "" {
			err = os.Remove(file)
		}
		if err != nil {
			t.Fatal(err)
		}
		code, _, stderr := call(t, "run", "--config", file)
		var last struct{ Error string }
		if err := json.Unmarshal([]byte(stderr), &last); err != nil {
			t.Fatalf("%v: %s", err, stderr)
		}
		reason := strings.TrimPrefix(last.Error, "settings: ")
		if code != exitSettings || !strings.Contains(reason, want) {
			t.Fatalf("exit code %d: %s, want %s", code, stderr, want)
		}
		quoted, _ := json.Marshal(reason)
		for range 2 {
			if lines := reload(); len(lines) != 1 || !strings.Contains(lines[0], `"error":`+string(quoted)) {
				t.Errorf("%s, want %s", lines, quoted)
			}
		}
	}
	one := strings.Replace(string(text), "topic: photos", "topic: photos, poll_interval: never", 1)
	if err := os.WriteFile(file, []byte(one), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if lines := reload(); len(lines) != 2 || !strings.Contains(lines[0], "BRIDGE_POLL_INTERVAL") ||
			!strings.Contains(lines[1], `"rejected":1}`) {
			t.Errorf("%s", lines)
		}
	}
	stop()
}
