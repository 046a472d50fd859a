//go:build integration

package integration

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// What a browser shows of the status page: live, readable at night, on a phone and by keyboard, of itself alone.
func TestPage(t *testing.T) {
	out, err := exec.Command("bash", "browser/install.sh").Output()
	if err != nil {
		t.Fatalf("installing the browser: %v", err)
	}
	browser, modules, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	p, grow, next := growing(t, "INSTANCE=bridge-0")
	p.ready(t)
	grow(120)
	next()
	grow(60)
	events := func(n int) {
		t.Helper()
		eventually(t, 20*time.Second, "the events are delivered",
			func() bool { return p.status(t).SinceStart.Events >= n })
	}
	events(180)
	pictures := os.Getenv("SCREENSHOTS") // a directory to keep them in: docs/images
	if pictures == "" {
		pictures = t.TempDir()
	}
	look := exec.Command("node", "browser/page.cjs", p.url(t)+"/", pictures)
	look.Env = append(os.Environ(), "NODE_PATH="+modules, "CHROMIUM="+browser)
	look.Stderr = os.Stderr
	in, err := look.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := look.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := look.Start(); err != nil {
		t.Fatal(err)
	}
	var last string
	for lines := bufio.NewScanner(stdout); lines.Scan(); last = lines.Text() {
		if lines.Text() == "grow" {
			grow(40)
			events(220)
			if _, err := in.Write([]byte("grown\n")); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := look.Wait(); err != nil {
		t.Fatal(err)
	}
	var seen struct {
		Badge, Position, Totals, Lag, Azure, Ours, Topics, Leases string

		Overflow   map[string]float64
		Contrast   map[string]float64
		Background struct{ Light, Dark string }
		Focus      []struct{ What, Outline string }
		Target     float64

		Paused, Resumed, Problems, Foreign []string
	}
	if err := json.Unmarshal([]byte(last), &seen); err != nil {
		t.Fatalf("%v: %s", err, last)
	}
	s := p.status(t)
	for what, ok := range map[string]bool{
		"ready":           seen.Badge == "ready",
		"the position":    strings.Contains(seen.Position, s.Position.Current),
		"totals, live":    strings.Contains(seen.Totals, "220"),
		"the lag's parts": seen.Azure != "" && seen.Azure != "unknown" && seen.Ours != "" && seen.Ours != "unknown",
		"the topic":       strings.Contains(seen.Topics, s.Topic) && strings.Contains(seen.Topics, "UTC"),
		"leases": strings.Contains(seen.Leases, s.Instance+" (here)") && strings.Contains(seen.Leases,
			"02: 0000"),
		"no overflow":        len(seen.Overflow) == 2 && seen.Overflow["desk"] <= 0 && seen.Overflow["phone"] <= 0,
		"contrast, light":    seen.Contrast["light"] >= 4.5,
		"contrast, dark":     seen.Contrast["dark"] >= 4.5,
		"a dark mode":        seen.Background.Dark != seen.Background.Light,
		"a large button":     seen.Target >= 36,
		"pause by keyboard":  len(seen.Paused) == 2 && seen.Paused[0] == "true" && seen.Resumed[0] == "false",
		"no problems":        len(seen.Problems) == 0,
		"nothing of others'": len(seen.Foreign) == 0,
	} {
		if !ok {
			t.Errorf("not as it should be: %s\n%s", what, last)
		}
	}
	for i, want := range []string{"Skip to content", "pause", "status (JSON)", "metrics", "readyz"} {
		if i >= len(seen.Focus) || seen.Focus[i].What != want || seen.Focus[i].Outline == "none" {
			t.Errorf("tab %d: %+v, want %s with an outline", i+1, seen.Focus, want)
			break
		}
	}
}
