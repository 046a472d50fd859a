//go:build integration

package integration

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"blobfeed/integration/browser"
)

// The status page of the program, live: what it says is what the program does, and that the program is gone.
func TestPage(t *testing.T) {
	t.Parallel()
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
	s := p.status(t)
	var seen struct {
		Headline, Position, Events, Lag, Azure, Ours, Topics, States, Leases, Errors, Gone string

		Samples int
	}
	err := browser.Run("browser", "page.cjs", &seen, map[string]func(){
		"grow": func() { grow(40); events(220) },
		"stop": func() { p.signal(syscall.SIGKILL) },
	}, p.url(t)+"/")
	if err != nil {
		t.Fatal(err)
	}
	for what, ok := range map[string]bool{
		"the verdict":     seen.Headline == "Up to date",
		"the position":    strings.Contains(seen.Position, s.Position.Current),
		"events, live":    seen.Events == "220",
		"the lag's parts": strings.HasSuffix(seen.Azure, "s") && strings.HasSuffix(seen.Ours, "s"), // seconds
		"the topic":       strings.Contains(seen.Topics, s.Topic),
		"leases":          strings.Contains(seen.Leases, s.Instance+" (here)") && strings.Contains(seen.Leases, "02: 0000"),
		"their states":    strings.Contains(seen.States, "drained"),
		"the last hour":   seen.Samples > 0,
		"no errors":       seen.Errors == "none",
		"an end":          strings.HasPrefix(seen.Gone, "This instance has not answered since "),
	} {
		if !ok {
			t.Errorf("not as it should be: %s\n%+v", what, seen)
		}
	}
}
