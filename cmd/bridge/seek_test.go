package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/internal/status"
)

// seek moves back to a segment and to a time, and forward: exactly the events between are repeated or left out.
func TestSeek(t *testing.T) {
	t.Parallel()
	c := deliveredReal(t)
	before := read(t, c, changes)
	first, marks := positions(before)
	segment := "2020/05/27/1800"
	var from []string
	for _, p := range first {
		if p >= segment {
			from = append(from, p)
		}
	}
	if len(from) == 0 || len(from) == len(first) {
		t.Fatalf("%d of %d events are in %s or later", len(from), len(first), segment)
	}
	last := marks[len(marks)-1]

	code, stdout, _ := call(t, "seek", "--to", segment)
	for _, want := range []string{"continues at", segment, "are repeated", "promised", "nothing changed; add --yes"} {
		if code != exitOK || !strings.Contains(stdout, want) {
			t.Errorf("exit code %d, %q is not in:\n%s", code, want, stdout)
		}
	}
	runToEnd(t)
	if got := read(t, c, changes); len(got) != len(before) {
		t.Fatalf("without --yes %d records have come", len(got)-len(before))
	}

	if code, stdout, stderr := call(t, "seek", "--to", segment, "--yes"); code != exitOK ||
		!strings.HasSuffix(stdout, "done\n") {
		t.Fatalf("exit code %d: %s%s", code, stdout, stderr)
	}
	if s := statusOf(t); s.Position.Seek == nil || s.Position.Seek.To != segment || s.Position.Resolved == nil {
		t.Errorf("%+v", s.Position)
	}
	runToEnd(t)
	after := newer(before, read(t, c, changes))
	events, markers := positions(after)
	if !slices.Equal(events, from) {
		t.Errorf("%d events came again, want the %d from %s on", len(events), len(from), segment)
	}
	// I6: on each partition the last marker stands in front again, and tells.
	for p := range int32(4) {
		i := slices.IndexFunc(after, func(r *kgo.Record) bool { return r.Partition == p })
		if r := after[i]; r.Key != nil || string(r.Value) != string(last.Value) ||
			!strings.HasSuffix(header(r, "seek"), " "+segment) {
			t.Errorf("partition %d begins with %s, headers %v", p, r.Value, r.Headers)
		}
	}
	told := 0
	for _, m := range markers {
		if string(m.Value) < string(last.Value) {
			t.Errorf("a marker goes back: %s", m.Value)
		}
		if header(m, "seek") != "" {
			told++
		}
	}
	if told != 4 {
		t.Errorf("%d markers tell of the seek, want one for each partition", told)
	}

	before = read(t, c, changes)
	at := "2020-05-27T18:00:00Z"
	if code, _, stderr := call(t, "seek", "--to", at, "--yes"); code != exitOK {
		t.Fatal(stderr)
	}
	runToEnd(t)
	events, _ = positions(newer(before, read(t, c, changes)))
	want, _ := positions(slices.DeleteFunc(slices.Clone(before),
		func(r *kgo.Record) bool { return header(r, "updated") < "1590602400000000000" }))
	slices.Sort(want)
	if want = slices.Compact(want); !slices.Equal(events, want) {
		t.Errorf("%d events from %s on came again, want %d", len(events), at, len(want))
	}

	// Forward, to behind the feed: nothing is left.
	before = read(t, c, changes)
	code, stdout, stderr := call(t, "seek", "--to", "2021-01-01T00:00:00Z", "--yes", "--force")
	if code != exitOK || !strings.Contains(stdout, "are skipped") || strings.Contains(stdout, "again") {
		t.Errorf("exit code %d: %s%s", code, stdout, stderr)
	}
	runToEnd(t)
	if events, _ := positions(newer(before, read(t, c, changes))); len(events) != 0 {
		t.Errorf("%d events came", len(events))
	}
}

// seek names the markers whose promise it breaks, also if nothing was delivered: consumers rely on them.
func TestSeekTellsOfMarkers(t *testing.T) {
	t.Parallel()
	clusterFor(t)
	setenv(t, "BRIDGE_CONTAINERS", "none")
	runToEnd(t)
	if s := statusOf(t); s.Totals.Emitted != 0 || s.Position.Resolved == nil {
		t.Fatalf("%+v", s)
	}
	for to, tells := range map[string]bool{"2020/05/27/1500": true, "earliest": true, "2021-01-01T00:00:00Z": false} {
		code, stdout, stderr := call(t, "seek", "--to", to)
		if code != exitOK || strings.Contains(stdout, "Markers have promised") != tells ||
			strings.Contains(stdout, "2020/01/16/2100, the earliest segment") != (to == "earliest") ||
			strings.Contains(stdout, "Delivered events are repeated") {
			t.Errorf("to %s: exit code %d: %s%s", to, code, stdout, stderr)
		}
	}
}

// A seek back behind the end repeats the marker of the end: none is above it, as events above it are left out.
func TestSeekBehindTheEnd(t *testing.T) {
	t.Parallel()
	c := clusterFor(t)
	setenv(t, "BRIDGE_END_TIME", "2020-05-29T17:00:05Z") // in a segment
	runToEnd(t)
	if code, _, stderr := call(t, "seek", "--to", "2020/05/29/1600", "--yes"); code != exitOK {
		t.Fatal(stderr)
	}
	runToEnd(t)
	end := map[int32]string{}
	for _, r := range read(t, c, changes) {
		if at := header(r, "resolved"); at != "" {
			end[r.Partition] = at
		}
	}
	for p, at := range end {
		if !strings.HasPrefix(at, "1590771605000000000.") {
			t.Errorf("the last marker of partition %d is %s", p, at)
		}
	}
	if code, stdout, stderr := call(t, "verify", "--feed"); code != exitOK || len(end) == 0 {
		t.Errorf("exit code %d: %s%s", code, stdout, stderr)
	}
}

// A filter that selects more, a topic for each container, and a seek back: what verify expects of the markers holds for
// the topics that are found, also where the bridge stops in the middle.
func TestSeekWithAWiderFilter(t *testing.T) {
	t.Parallel()
	for _, delivery := range []string{"exactly_once", "at_least_once"} {
		t.Run(delivery, func(t *testing.T) {
			clusterFor(t)
			var feed string
			copied(t, func(dir string) error { feed = dir; return nil })
			setAll(t, map[string]string{
				"TOPIC": "blobs-{container}", "CONTAINERS": "container0", "DELIVERY": delivery, "TOPIC_PARTITIONS": "1",
			})
			runToEnd(t)
			setenv(t, "BRIDGE_CONTAINERS", "container0,container00,container11,container22")
			if code, _, stderr := call(t, "seek", "--to", "earliest", "--yes"); code != exitOK {
				t.Fatal(stderr)
			}
			verified := func(args ...string) {
				t.Helper()
				if code, stdout, stderr := call(t, args...); code != exitOK || !strings.Contains(stdout, "container22") {
					t.Errorf("exit code %d: %s%s", code, stdout, stderr)
				}
			}
			const chunk = "log/00/2020/05/27/1500/00000.avro" // as in damage
			whole, err := os.ReadFile(filepath.Join(feed, chunk))
			if err := errors.Join(err, damage(feed)); err != nil {
				t.Fatal(err)
			}
			if code, _, stderr := call(t, "run", "--once"); code != exitFailed {
				t.Fatalf("exit code %d: %s", code, stderr)
			}
			verified("verify")
			if err := os.WriteFile(filepath.Join(feed, chunk), whole, 0o600); err != nil {
				t.Fatal(err)
			}
			runToEnd(t)
			verified("verify")
			verified("verify", "--feed")
		})
	}
}

// Without markers nothing announces the repeats of a seek.
func TestSeekWithoutMarkers(t *testing.T) {
	t.Parallel()
	clusterFor(t)
	setenv(t, "BRIDGE_RESOLVED_TO", "off")
	runToEnd(t)
	for to, says := range map[string]bool{"2020/05/29/1600": true, "2021/01/01/0000": false} {
		code, stdout, stderr := call(t, "seek", "--to", to)
		if code != exitOK || strings.Contains(stdout, "bridge verify takes them for faults") != says {
			t.Errorf("to %s: exit code %d: %s%s", to, code, stdout, stderr)
		}
	}
}

// A place that the feed does not have yet looks like one where all is delivered, so that a typing error in the year stops
// delivery unseen: it is refused, and degraded where somebody insists.
func TestSeekBeyondTheFeed(t *testing.T) {
	t.Parallel()
	clusterFor(t)
	runToEnd(t)
	for to, why := range map[string]string{
		"2100/05/29/1700": "in the future", "2020/05/29/2200": "no segment from 2020/05/29/2200 on",
		"2100-01-01T00:00:00Z": "in the future", "2021-01-01T00:00:00Z": "no segment from 2021-01-01T00:00:00Z on",
	} {
		code, stdout, stderr := call(t, "seek", "--to", to, "--yes")
		if code != exitFailed || !strings.Contains(stderr, why) || !strings.Contains(stderr, "--force") {
			t.Errorf("to %s: exit code %d: %s%s", to, code, stdout, stderr)
		}
	}
	t.Run("behind the end", func(t *testing.T) {
		setenv(t, "BRIDGE_END_TIME", "2020-05-29T17:00:00Z")
		code, _, stderr := call(t, "seek", "--to", "2020/05/29/2000", "--yes")
		if code != exitFailed || !strings.Contains(stderr, "2020/05/29/2000 is after BRIDGE_END_TIME=2020-05-29T17:00:00Z") {
			t.Errorf("exit code %d: %s", code, stderr)
		}
	})
	if s := statusOf(t); s.Position.Seek != nil {
		t.Errorf("the bridge has moved: %+v", s.Position)
	}
	// The plan names the segment where delivery continues, and says what it would take.
	for to, says := range map[string][]string{
		"2020/05/28/0000":      {"2020/05/29/1600, the first segment from 2020/05/28/0000 on", "add --yes\n"},
		"2020-05-28T00:30:00Z": {"2020/05/29/1600, the first segment from 2020-05-28T00:30:00Z on", "add --yes\n"},
		"2020-05-29T17:10:00Z": {"2020-05-29T17:10:00Z, in segment 2020/05/29/1600", "add --yes\n"},
		"2020/05/29/2130":      {"nothing would be delivered", "add --yes --force\n"},
	} {
		code, stdout, stderr := call(t, "seek", "--to", to)
		if code != exitOK || !strings.Contains(stdout, says[0]) || !strings.Contains(stdout, says[1]) ||
			strings.Contains(stdout, "repeated") && strings.Contains(stdout, "nothing would be") {
			t.Errorf("to %s: exit code %d: %s%s", to, code, stdout, stderr)
		}
	}
	if code, _, stderr := call(t, "seek", "--to", "2100/05/29/1700", "--yes", "--force"); code != exitOK {
		t.Fatal(stderr)
	}
	if s := statusOf(t); !strings.Contains(s.Position.Beyond, "into the future, to 2100/05/29/1700") {
		t.Errorf("%+v", s.Position)
	}
	checked := func(why string) {
		t.Helper()
		if _, stdout, _ := call(t, "check"); !strings.Contains(stdout, why) || !strings.Contains(stdout, status.MoveBack) {
			t.Errorf("check: %s", stdout)
		}
	}
	checked("into the future, to 2100/05/29/1700")
	if code, _, stderr := call(t, "run", "--once"); code != exitOK || !strings.Contains(stderr, status.MoveBack) {
		t.Errorf("run --once: exit code %d: %s", code, stderr)
	}
	if code, _, stderr := call(t, "seek", "--to", "2020/05/29/2200", "--yes", "--force"); code != exitOK {
		t.Fatal(stderr)
	}
	checked("the feed has no segment from 2020/05/29/2200 on")
	if code, _, stderr := call(t, "run", "--once"); code != exitOK || !strings.Contains(stderr, "has no segment from") {
		t.Errorf("run --once: exit code %d: %s", code, stderr)
	}
}

// Another feed's segments say nothing of where this bridge continues.
func TestSeekOfAnotherFeed(t *testing.T) {
	t.Parallel()
	clusterFor(t)
	runToEnd(t)
	setenv(t, "BRIDGE_SOURCE_URL", "file://"+t.TempDir())
	code, _, stderr := call(t, "seek", "--to", "2020/05/29/1700", "--yes")
	if code != exitSettings || !strings.Contains(stderr, "BRIDGE_SOURCE_URL names feed") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	if s := statusOf(t); s.Position.Seek != nil {
		t.Errorf("%+v", s.Position)
	}
}

// A first start behind the newest segment delivers nothing, and everything says so; the newest segment is the feed's.
func TestStartBehindTheFeed(t *testing.T) {
	t.Parallel()
	clusterFor(t)
	setenv(t, "BRIDGE_START", "2021-01-01")
	const why = "the feed has no segment from BRIDGE_START on, 2021-01-01T00:00:00Z"
	if code, _, stderr := call(t, "run", "--once"); code != exitOK || !strings.Contains(stderr, why) {
		t.Errorf("run --once: exit code %d: %s", code, stderr)
	}
	if s := statusOf(t); s.Verdict.Code != status.Degraded || !strings.Contains(s.Verdict.Text, why) ||
		s.Position.Newest != "" {
		t.Errorf("%+v", s)
	}
	if _, stdout, _ := call(t, "check"); !strings.Contains(stdout, why) {
		t.Errorf("check: %s", stdout)
	}
}

// check describes a first start behind a seek by the place of the seek, not by BRIDGE_START, which does not count then.
func TestCheckAfterAnEarlySeek(t *testing.T) {
	t.Parallel()
	clusterFor(t)
	setenv(t, "BRIDGE_START", "2020-01-01")
	for _, tc := range []struct{ to, says string }{
		{"2020/05/29/1700", "run starts at 2020/05/29/1700, where bridge seek has moved the bridge\n"},
		{"earliest", "run starts at the oldest segment, where bridge seek has moved the bridge\n"},
		{"2021/01/01/0000", "the feed has no segment from 2021/01/01/0000 on, where bridge seek has moved the bridge"},
		{"2021-01-01", "the feed has no segment from 2021-01-01T00:00:00Z on, where bridge seek has moved the bridge"},
		{"2100-01-01", "bridge seek has moved the bridge into the future, to 2100-01-01T00:00:00Z"},
	} {
		if code, _, stderr := call(t, "seek", "--to", tc.to, "--yes", "--force"); code != exitOK {
			t.Fatalf("seek to %s: exit code %d: %s", tc.to, code, stderr)
		}
		code, stdout, stderr := call(t, "check")
		beyond := !strings.HasPrefix(tc.says, "run starts")
		if code != exitOK || !strings.Contains(stdout, tc.says) || strings.Contains(stdout, status.MoveBack) != beyond ||
			strings.Contains(stdout, "2020-01-01") || strings.Contains(stdout, "BRIDGE_START") {
			t.Errorf("seek to %s: exit code %d: %s%s", tc.to, code, stdout, stderr)
		}
	}
	setenv(t, "BRIDGE_END_TIME", "2021-01-01")
	if _, stdout, _ := call(t, "check"); !strings.Contains(stdout, "it delivers nothing") {
		t.Errorf("with an end before the place: %s", stdout)
	}
}

// A seek before the first start to a place that the feed does not have is degraded like a later one, whoever looks, and
// is no BRIDGE_START.
func TestEarlySeekBeyondTheFeed(t *testing.T) {
	t.Parallel()
	for to, why := range map[string]string{
		"2021/01/01/0000": "the feed has no segment from 2021/01/01/0000 on, where bridge seek has moved the bridge",
		"2100-01-01":      "bridge seek has moved the bridge into the future, to 2100-01-01T00:00:00Z",
	} {
		clusterFor(t)
		setAll(t, map[string]string{"LOG_FORMAT": "json", "DEBUG": "report_interval=100ms", "HTTP_ADDR": "off"})
		if code, _, stderr := call(t, "seek", "--to", to, "--yes", "--force"); code != exitOK {
			t.Fatal(stderr)
		}
		if code, _, stderr := call(t, "run", "--once"); code != exitOK || !strings.Contains(stderr, why) {
			t.Errorf("run --once: exit code %d: %s", code, stderr)
		}
		s := statusOf(t)
		if s.Verdict.Code != status.Degraded || !strings.Contains(s.Verdict.Text, why) ||
			s.Verdict.Remedy != status.MoveBack {
			t.Errorf("status: %+v", s.Verdict)
		}
		provoke(t, `"verdict":"degraded: `+why, []string{"run"})
	}
}
