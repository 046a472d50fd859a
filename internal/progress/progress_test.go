package progress

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"blobfeed/bridge"
	"blobfeed/internal/config"
	"blobfeed/internal/status"
)

// A failure of the instance names no lease.
func TestFailureNamesItsLease(t *testing.T) {
	var log bytes.Buffer
	_, p := New(&config.Config{LogFormat: "json"}, &log)
	p.Failed(3, errors.New("of a lease"))
	p.Failed(-1, errors.New("of the instance"))
	if s := log.String(); strings.Count(s, `"lease"`) != 1 || !strings.Contains(s, `"lease":3,"error":"of a lease"`) ||
		!strings.Contains(s, "of the instance") {
		t.Error(s)
	}
}

// What was retried is over when a run has delivered everything: its log does not end with an error. Otherwise the end
// says how often it came.
func TestWhatWasRetriedIsOver(t *testing.T) {
	for _, tc := range []struct {
		name        string
		err         error
		interrupted bool
		lines       int
	}{{"done", nil, false, 2}, {"failed", errors.New("given up"), false, 3}, {"stopped by a signal", nil, true, 3}} {
		var out bytes.Buffer
		log, p := New(&config.Config{LogFormat: "json", Tuning: config.Tuning{LogRepeat: time.Minute}}, &out)
		for range 3 {
			p.Failed(0, errors.New("the block is damaged"))
		}
		log.Warn("events came late", "segment", 1)
		if tc.interrupted {
			p.Interrupted()
		}
		p.Finish(tc.err)
		if n := strings.Count(out.String(), "\n"); n != tc.lines {
			t.Errorf("%s: %d lines, want %d: %s", tc.name, n, tc.lines, out.String())
		}
	}
}

// The verdict is in the log: with each report while events come, and when it changes, also if nothing moves.
func TestVerdictIsLogged(t *testing.T) {
	var log bytes.Buffer
	_, p := New(&config.Config{LogFormat: "json"}, &log)
	seen := &status.Status{Verdict: status.Verdict{Code: status.CatchingUp, Text: "catching up: segment 4 of 7"}}
	verdict := &seen.Verdict
	p.Look(func() *status.Status { return seen })
	expect := func(when, want string) {
		t.Helper()
		log.Reset()
		p.report()
		if s := log.String(); !strings.Contains(s, want) || want == "" && s != "" {
			t.Errorf("%s: %q, want %q", when, s, want)
		}
	}
	expect("at first", `"verdict":"catching up: segment 4 of 7"`)
	expect("while nothing moves", "")
	verdict.Text = "catching up: segment 5 of 7"
	expect("while nothing moves but a number", "")
	p.Committed(bridge.Commit{Read: 3})
	seen.Lag.Azure, seen.Lag.Bridge = new(150.), new(30.)
	expect("when events came", `"verdict":"catching up: segment 5 of 7","events":3`)
	if !strings.Contains(log.String(), `"lag":"3m0s"`) {
		t.Error(log.String())
	}
	seen.Lag.Bridge = nil
	p.Committed(bridge.Commit{Emitted: 5})
	expect("when a scan has written rows", `"verdict":"catching up: segment 5 of 7","events":3`)
	*verdict = status.Verdict{Code: status.Degraded, Text: "degraded: no route"}
	expect("when it fails", `"level":"WARN","msg":"progress","verdict":"degraded: no route"`)
	if !strings.Contains(log.String(), `"lag":"unknown"`) { // as the page has it
		t.Error(log.String())
	}
	expect("while it fails", "")
	seen.Hint = "no event has become a record"
	expect("at the first hint", `"level":"WARN","msg":"the settings may be wrong","hint":"no event has become a record"`)
	expect("later", "")
}

// On a terminal, a bar shows how much of a catch-up is done.
func TestBar(t *testing.T) {
	for share, want := range map[float64]string{
		0: "[--------------------]", 0.5: "[##########----------]", 0.999: "[###################-]",
		1: "[####################]", 1.01: "[####################]",
	} {
		if got := bar(&status.Progress{Share: &share}); got != want {
			t.Errorf("%g: %s, want %s", share, got, want)
		}
	}
	if got := bar(nil) + bar(&status.Progress{}); got != "" {
		t.Errorf("%q for an unknown share", got)
	}
	share := 0.5
	var out bytes.Buffer
	p := &Display{line: &line{to: &out}, began: time.Now()}
	p.Look(func() *status.Status {
		return &status.Status{Verdict: status.Verdict{Text: "catching up: segment 4 of 7"},
			Progress: &status.Progress{Share: &share}}
	})
	p.events.Store(150_000)
	p.report()
	const want = "[##########----------]    150,000 events  catching up: segment 4 of 7"
	if !strings.Contains(out.String(), want) {
		t.Errorf("%q, want %q", out.String(), want)
	}
}

// A run that is to end by itself says that it waits, for what, and how to end it.
func TestRunOnceSaysThatItWaits(t *testing.T) { synctest.Test(t, testRunOnceWaits) }

func testRunOnceWaits(t *testing.T) {
	for _, once := range []bool{false, true} {
		var log bytes.Buffer
		_, p := New(&config.Config{LogFormat: "json"}, &log)
		if once {
			p.Once()
		}
		p.Look(func() *status.Status {
			return &status.Status{Verdict: status.Verdict{Code: status.Degraded,
				Text: "degraded: the storage service has not answered"}}
		})
		for range 8 { // 4 minutes, the first one with something new
			time.Sleep(30 * time.Second)
			if n := len(log.String()); n == 0 {
				p.Committed(bridge.Commit{Read: 1})
			}
			p.report()
		}
		const says = `"msg":"run --once still waits","verdict":"degraded: the storage service has not answered","seconds":`
		n := strings.Count(log.String(), says)
		if want := map[bool]int{true: 3}[once]; n != want || once && !strings.Contains(log.String(), "SIGTERM ends it") {
			t.Errorf("once %v: %d times, want %d:\n%s", once, n, want, log.String())
		}
	}
}

// Only the first report on history is logged: in steady state the log is quiet for days.
func TestHistoryIsLoggedOnce(t *testing.T) {
	var log bytes.Buffer
	_, p := New(&config.Config{LogFormat: "json"}, &log)
	for range 3 {
		p.History(bridge.History{Headroom: time.Hour})
	}
	if n := strings.Count(log.String(), `"headroom_seconds":3600`); n != 1 {
		t.Errorf("%d times:\n%s", n, log.String())
	}
}

// stuck is a terminal that takes nothing until it is released.
type stuck struct{ asked, release chan struct{} }

func (s *stuck) Write(b []byte) (int, error) {
	s.asked <- struct{}{}
	<-s.release
	return len(b), nil
}

// A terminal that blocks, as one does after Ctrl-S, holds up no commit.
func TestCommitsDoNotWaitForTheTerminal(t *testing.T) {
	terminal := &stuck{make(chan struct{}), make(chan struct{})}
	_, p := start(&config.Config{}, terminal, true)
	reported, committed := make(chan struct{}), make(chan struct{})
	go func() { p.report(); close(reported) }()
	<-terminal.asked
	go func() { p.Committed(bridge.Commit{Read: 1}); close(committed) }()
	select {
	case <-committed:
	case <-time.After(10 * time.Second):
		t.Error("a commit waits")
	}
	close(terminal.release)
	<-reported
}

// A run --once that a signal has stopped has not delivered everything: verify would find what is missing.
func TestStoppedSaysWhatIsNext(t *testing.T) {
	var out bytes.Buffer
	for _, c := range []struct {
		once, interrupted bool
		events            int
		hint              string // none: ""
	}{
		{true, false, 1, "bridge verify --feed"}, {true, true, 1, "bridge run --once delivers the rest"},
		{true, false, 0, "bridge status says"}, {false, true, 1, ""},
	} {
		out.Reset()
		_, p := start(config.Defaults(), &out, false)
		if c.interrupted {
			p.Interrupted()
		}
		p.Committed(bridge.Commit{Read: c.events})
		p.Stopped(c.once)
		got := out.String()
		if c.hint == "" && strings.Contains(got, `"hint"`) || c.hint != "" && !strings.Contains(got, `"hint":"`+c.hint) {
			t.Errorf("%+v: %s", c, got)
		}
	}
}

// The seconds of a short run agree with its rate.
func TestShortRunHasSecondsThatAgreeWithItsRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, p := start(config.Defaults(), io.Discard, false)
		time.Sleep(10 * time.Second) // for the group
		p.Committed(bridge.Commit{Read: 300_000, Emitted: 717, Took: time.Second})
		time.Sleep(513 * time.Millisecond)
		const want = "Delivered 300,000 events as 717 records in 1.51s (198,281 events/s)."
		if got := p.Delivered(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
		time.Sleep(100 * time.Second)
		if got := p.Delivered(); !strings.Contains(got, " in 1m42s (2,955 events/s)") {
			t.Errorf("%q", got)
		}
	})
}
