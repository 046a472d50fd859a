package main

import (
	"context"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"testing"

	"blobfeed/internal/change"
	"blobfeed/internal/status"
)

func TestReset(t *testing.T) {
	t.Parallel()
	c := deliveredReal(t)
	setenv(t, "BRIDGE_EVENTS", "state") // frozen
	if code, _, stderr := call(t, "run", "--once"); code != exitSettings || !strings.Contains(stderr, "BRIDGE_EVENTS") {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	code, stdout, _ := call(t, "reset", "--output", "json")
	var p change.Plan
	if err := json.Unmarshal([]byte(stdout), &p); err != nil || code != exitOK || p.Done || len(p.Rows) < 3 ||
		len(p.Members) != 0 {
		t.Errorf("exit code %d, %v: %s", code, err, stdout)
	}
	if !statusOf(t).Started {
		t.Fatal("without --yes it was done")
	}
	if code, stdout, stderr := call(t, "reset", "--yes"); code != exitOK || !strings.HasSuffix(stdout, "done\n") {
		t.Fatalf("exit code %d: %s%s", code, stdout, stderr)
	}
	if s := statusOf(t); s.Started || s.Totals.Read != 0 {
		t.Errorf("%+v", s)
	}
	before := read(t, c, changes)
	setenv(t, "BRIDGE_EVENTS", "all")
	runToEnd(t)
	events, _ := positions(newer(before, read(t, c, changes)))
	if want, _ := positions(before); !slices.Equal(events, want) {
		t.Errorf("%d events after the reset, want all %d", len(events), len(want))
	}
	if code, stdout, _ := call(t, "verify", "--feed"); code != exitBroken || strings.Split(stdout, "\n")[1] !=
		"all 717 records are there twice, in the same order: was the bridge reset, or its state lost?" {
		t.Errorf("exit code %d: %s", code, stdout)
	}
}

// While an instance runs, status says so, and seek and reset need --force. The instance continues then.
func TestStateOfLiveBridge(t *testing.T) {
	t.Parallel()
	c := clusterFor(t)
	setenv(t, "BRIDGE_INSTANCE", "live")
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	go func() { ended <- execute(ctx, environ(t), []string{"run"}, io.Discard, io.Discard) }()
	defer func() { stop(); <-ended }()
	await(t, "the feed is delivered", func() bool {
		code, stdout, _ := call(t, "status", "--output", "json")
		s := new(status.Status)
		return code == exitOK && json.Unmarshal([]byte(stdout), s) == nil && s.Totals.Read == 717
	})
	s := statusOf(t)
	if len(s.Group.Members) != 1 || s.Group.Members[0].Instance != "live" || len(s.Group.Members[0].Leases) != 4 ||
		s.Leases[0].State != status.Held ||
		s.Leases[0].Owner != "live" ||
		s.Leases[0].Member != "live" {
		t.Errorf("%+v\n%+v", s.Group, s.Leases)
	}
	for _, verb := range []string{"seek --to earliest", "reset"} {
		if code, stdout, stderr := call(t, strings.Fields(verb)...); code != exitOK ||
			!strings.Contains(stdout, "These instances run: live") ||
			!strings.Contains(stdout, "nothing changed; add --yes") {
			t.Errorf("%s: exit code %d: %s%s", verb, code, stdout, stderr)
		}
		if code, _, stderr := call(t, append(strings.Fields(verb), "--yes")...); code != exitFailed ||
			!strings.Contains(stderr, "live members (live)") {
			t.Errorf("%s --yes: exit code %d: %s", verb, code, stderr)
		}
	}
	if code, stdout, stderr := call(t, "seek", "--to", "earliest", "--yes", "--force"); code != exitOK &&
		code != exitFenced {
		t.Fatalf("exit code %d: %s%s", code, stdout, stderr)
	}
	await(t, "all of it is delivered again",
		func() bool { return statusOf(t).Totals.Read == 2*717 && statusOf(t).Position.Seek == nil })
	if events, _ := positions(read(t, c, changes)); len(events) != 2*717 {
		t.Errorf("%d events, want each twice", len(events))
	}
}

// Without transactions nothing keeps an instance from writing, so not even --force takes its leases.
func TestNoForceWithoutFence(t *testing.T) {
	t.Parallel()
	clusterFor(t)
	setenv(t, "BRIDGE_DELIVERY", "at_least_once")
	setenv(t, "BRIDGE_INSTANCE", "live")
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	go func() { ended <- execute(ctx, environ(t), []string{"run"}, io.Discard, io.Discard) }()
	await(t, "the instance is a member", func() bool {
		code, stdout, _ := call(t, "status")
		return code == exitOK && strings.Contains(stdout, "1 member\n") && strings.Contains(stdout, "717 read")
	})
	setenv(t, "BRIDGE_DELIVERY", "exactly_once") // as an operator's terminal has it by default; the state knows better
	code, _, stderr := call(t, "reset", "--yes", "--force")
	_, _, first := call(t, "reset", "--yes")
	stop()
	<-ended
	if code != exitFailed || first != stderr || !strings.Contains(stderr, "without transactions") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	if !statusOf(t).Started {
		t.Error("it was done")
	}
	await(t, "the member is gone", func() bool { return len(statusOf(t).Group.Members) == 0 })
	if code, _, stderr := call(t, "seek", "--to", "2020/05/29/2100", "--yes"); code != exitOK ||
		statusOf(t).Position.Seek == nil {
		t.Errorf("stopped: exit code %d: %s", code, stderr)
	}
}

func TestStateUsage(t *testing.T) {
	t.Parallel()
	clusterFor(t)
	for args, want := range map[string]struct {
		code int
		says string
	}{
		"seek":                                   {exitUsage, "--to"},
		"seek --to yesterday":                    {exitUsage, "yesterday"},
		"seek --to earliest more":                {exitUsage, `unexpected argument "more"`},
		"seek --to earliest":                     {exitOK, "no bridge of the name b has run"},
		"seek --to 2020/05/27/1500 --output xml": {exitUsage, "xml"},
		"reset now":                              {exitUsage, `unexpected argument "now"`},
		"reset":                                  {exitOK, "no bridge of the name b has run"},
		"scan --plan":                            {exitUsage, "are for --sweep"},
		"scan --max-deletions 5":                 {exitUsage, "are for --sweep"},
		"scan --sweep --plan --wait":             {exitUsage, "leave out --wait"},
		"scan --sweep --max-deletions -1":        {exitUsage, "want a number from 0 on"},
		"scan --cancel --wait":                   {exitUsage, "--cancel stands alone"},
		"scan --container Photos":                {exitUsage, "lowercase letters"},
		"scan --container $logs":                 {exitUsage, "the service writes this container itself"},
		"status --watch never":                   {exitUsage, "watch"},
		"status --output xml":                    {exitUsage, "xml"},
		"seek --help":                            {exitOK, "After a move back"},
	} {
		code, stdout, stderr := call(t, strings.Fields(args)...)
		if code != want.code || !strings.Contains(stdout+stderr, want.says) {
			t.Errorf("bridge %s: exit code %d\n%s%s", args, code, stdout, stderr)
		}
	}
}
