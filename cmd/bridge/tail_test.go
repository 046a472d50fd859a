package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/internal/testing/fakebroker"
)

// What tail prints of the real feed is what run writes of it: the same keys, values and headers, in the order of each
// key. It needs no brokers.
func TestTailIsWhatRunWrites(t *testing.T) {
	t.Parallel()
	for _, settings := range []string{
		"",
		"ENVELOPE=bare OPTIONS=updated,topic_in_value ON_ERROR=dead_letter",
		"ENVELOPE=row KEY_FORMAT=string RESOLVED_TO=off EVENTS=state",
		"DELETES=both TOPIC=of-{account} PREFIXES=container0/blob,test EXTRA_HEADERS=a=b",
	} {
		t.Run(settings, func(t *testing.T) {
			cluster := clusterFor(t)
			for _, s := range strings.Fields(settings) {
				name, value, _ := strings.Cut(s, "=")
				setenv(t, "BRIDGE_"+name, value)
			}
			runToEnd(t)
			want := consoleLines(t, cluster)
			setenv(t, "BRIDGE_KAFKA_BROKERS", "")
			code, stdout, stderr := call(t, "tail", "--from", "earliest", "--once", "--headers")
			got := slices.Collect(strings.Lines(stdout))
			byKey := func(a, b string) int {
				return strings.Compare(strings.Split(a, "\t")[1], strings.Split(b, "\t")[1])
			}
			slices.SortStableFunc(got, byKey)
			slices.SortStableFunc(want, byKey)
			if code != exitOK || len(got) < 100 || !slices.Equal(got, want) {
				t.Errorf("exit code %d: %d lines, want %d: %s", code, len(got), len(want), stderr)
			}
		})
	}
}

// consoleLines returns the records of all topics of records, but markers, as tail prints them.
func consoleLines(t *testing.T, c *kfake.Cluster) (lines []string) {
	t.Helper()
	topics, err := fakebroker.Admin(t, c).ListTopics(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, topic := range topics.Names() {
		if strings.HasSuffix(topic, ".offsets") {
			continue
		}
		for _, r := range read(t, c, topic) {
			if r.Key != nil {
				lines = append(lines, consoleLine(r))
			}
		}
	}
	return lines
}

func consoleLine(r *kgo.Record) string {
	var headers []string
	for _, h := range r.Headers {
		headers = append(headers, h.Key+":"+string(h.Value))
	}
	value := string(r.Value)
	if r.Value == nil {
		value = "null"
	}
	return fmt.Sprintf("%s\t%s\t%s\n", strings.Join(headers, ","), r.Key, value)
}

func TestTailEnds(t *testing.T) {
	t.Parallel()
	setenv(t, "BRIDGE_SOURCE_URL", "file://"+abs(t, "../../testdata/real-2020"))
	for args, lines := range map[string]int{
		"--from earliest --once":               713,
		"--from earliest --once --output json": 713,
		"--from earliest --limit 7":            7,
		"--from 2020/05/29/1700 --once":        181,
		"--from 2020-05-29T17:00:00Z --once":   181,
		"--once":                               713,
		"--from latest --once":                 0,
		"--from 2020-05-29 --once --limit 1":   1,
	} {
		code, stdout, stderr := call(t, append([]string{"tail"}, strings.Fields(args)...)...)
		limited := strings.Contains(args, "--limit") // then more events are read than are printed
		if n := strings.Count(stdout, "\n"); code != exitOK || n != lines ||
			strings.Contains(stderr, `"events":`) == limited {
			t.Errorf("tail %s: exit code %d, %d lines, want %d: %s", args, code, n, lines, stderr)
		}
	}
	for args, says := range map[string]string{
		"--from soon": `--from: "soon" is neither a segment`, "--limit -1": "--limit -1: want a number",
		"--from 2300-01-01T00:00:00Z":            "its year is out of range: want 1970 to 2261",
		"--from 2020/13/01/0000":                 `"2020/13/01/0000" is no time: its month is out of range`,
		"--from 2020-13-01":                      `"2020-13-01" is no time: its month is out of range`,
		"--from 2020-05-01T25:00:00Z":            "its hour is out of range",
		"--from 2020-02-30":                      "--from: \"2020-02-30\" is no time: its day is out of range\n",
		"--from 12026-01-01T00:00:00Z":           `2026-01-01T00:00:00Z" is no time: its year is out of range: want`,
		"--from 99999999999999999999.0000000000": "0000000000\" is no time: its year is out of range: want 1970 to 2261",
		"--limit many":                           `invalid value "many" for flag --limit: want a number`,
		"--output xml":                           "--output xml",
	} {
		if code, _, stderr := call(t, append([]string{"tail"}, strings.Fields(args)...)...); code != exitUsage ||
			!strings.Contains(stderr, says) {
			t.Errorf("tail %s: exit code %d: %s", args, code, stderr)
		}
	}
}

// closed is a pipe whose reader has gone.
type closed struct{}

func (closed) Write([]byte) (int, error) {
	return 0, &os.PathError{Op: "write", Path: "|1", Err: syscall.EPIPE}
}

// A reader such as head may go: that is no failure.
func TestTailIntoClosedPipe(t *testing.T) {
	t.Parallel()
	setenv(t, "BRIDGE_SOURCE_URL", "file://"+abs(t, "../../testdata/real-2020"))
	var errs strings.Builder
	if code := execute(t.Context(), environ(t), []string{"tail", "--from", "earliest"}, closed{}, &errs); code != exitOK ||
		strings.Contains(errs.String(), "pipe") {
		t.Errorf("exit code %d: %s", code, errs.String())
	}
}

// A signal ends a tail that waits for events, with what it has printed. It is one for all that runs in the process, so
// no other test runs meanwhile.
func TestTailEndsBySignal(t *testing.T) {
	setenv(t, "BRIDGE_SOURCE_URL", "file://"+abs(t, "../../testdata/real-2020"))
	var out safeBuffer
	ended := make(chan int, 1)
	go func() {
		ended <- execute(context.Background(), environ(t), []string{"tail", "--from", "earliest"}, &out, io.Discard)
	}()
	await(t, "the records", func() bool { return strings.Count(out.String(), "\n") == 713 })
	self, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = self.Signal(os.Interrupt)
	}
	if err != nil {
		t.Fatal(err)
	}
	select {
	case code := <-ended:
		if code != exitOK {
			t.Errorf("exit code %d", code)
		}
	case <-time.After(10 * time.Second):
		t.Error("it does not end")
	}
}

// A tail that ends says where the feed ends, and why it has printed nothing.
func TestTailSaysWhereTheFeedEnds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ containers, args, hint string }{
		{"", "--once", ""},
		{"", "--once --from 2021-01-01", ""},
		{"nope", "--once", "no event has become a record: check --from and BRIDGE_CONTAINERS"},
		{"", "--once --from 2020-05-29T22:14:00Z", "no event is of a change from --from on"},
	} {
		t.Run(c.containers+c.args, func(t *testing.T) {
			setAll(t, map[string]string{"SOURCE_URL": "file://" + abs(t, "../../testdata/real-2020")})
			if c.containers != "" {
				setenv(t, "BRIDGE_CONTAINERS", c.containers)
			}
			code, _, stderr := call(t, append([]string{"tail"}, strings.Fields(c.args)...)...)
			if code != exitOK || !strings.Contains(stderr, `"newest_segment":"2020/05/29/2100"`) ||
				strings.Contains(stderr, "new records appear") || strings.Contains(stderr, `"hint"`) != (c.hint != "") ||
				!strings.Contains(stderr, c.hint) {
				t.Errorf("exit code %d: %s", code, stderr)
			}
		})
	}
}
