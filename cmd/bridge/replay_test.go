package main

import (
	"bytes"
	"context"
	"io"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sr/srfake"
)

// between returns what a replay of a time is to bring: the records of it, by position.
func between(records []*kgo.Record, from, to string) map[string]*kgo.Record {
	found := map[string]*kgo.Record{}
	for _, r := range records {
		if u := header(r, "updated"); r.Key != nil && u >= from && u <= to {
			found[header(r, "position")] = r
		}
	}
	return found
}

// A replay writes the same records as the first delivery, to the same partitions, also if it is interrupted; a
// second call adds nothing, and its state can be deleted.
func TestReplay(t *testing.T) {
	t.Parallel()
	c := deliveredReal(t)
	setenv(t, "BRIDGE_DEBUG", "bundle_bytes=0") // two transactions a segment: something to interrupt
	args := strings.Fields("replay --from 2020-01-20T00:00:00Z --to 2020-05-29T18:00:00Z --topic again")
	want := between(read(t, c, changes), "1579478400000000000.0000000000", "1590775200000000000.0000000000")
	live := statusOf(t)

	ctx, kill := context.WithCancel(t.Context())
	var ends atomic.Int32
	c.ControlKey(int16(kmsg.EndTxn), func(kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		if ends.Add(1) == 6 {
			kill()
		}
		return nil, nil, false
	})
	if code := execute(ctx, environ(t), args, io.Discard, io.Discard); code != exitFailed {
		t.Fatalf("the interrupted replay: exit code %d", code)
	}
	part := between(read(t, c, "again"), "", "9")
	code, stdout, stderr := call(t, args...)
	if code != exitOK ||
		!strings.Contains(stdout, "again has the events from 2020-01-20T00:00:00Z to 2020-05-29T18:00:00Z") {
		t.Fatalf("exit code %d: %s%s", code, stdout, stderr)
	}
	got := read(t, c, "again")
	events, markers := positions(got)
	if positions := slices.Sorted(maps.Keys(want)); !slices.Equal(events, positions) || len(part) == 0 ||
		len(part) == len(events) {
		t.Fatalf("%d events, %d before the interruption, want each of %d once", len(events), len(part), len(positions))
	}
	for _, r := range got {
		if o := want[header(r, "position")]; r.Key != nil &&
			(!bytes.Equal(o.Key, r.Key) || !bytes.Equal(o.Value, r.Value) || o.Partition != r.Partition ||
				header(o, "updated") != header(r, "updated")) {
			t.Errorf("%s: %s in partition %d, was %s in %d",
				header(r, "position"), r.Value, r.Partition, o.Value, o.Partition)
		}
	}
	if last := markers[len(markers)-1]; !strings.Contains(string(last.Value), `"1590775200000000000.2147483647"`) {
		t.Errorf("the last marker is %s", last.Value)
	}

	if code, _, stderr := call(t, args...); code != exitOK || len(read(t, c, "again")) != len(got) {
		t.Errorf("once more: exit code %d: %s", code, stderr)
	}
	other := slices.Replace(slices.Clone(args), 4, 5, "2020-05-29T19:00:00Z")
	if code, _, stderr := call(t, other...); code != exitSettings || !strings.Contains(stderr, "BRIDGE_END_TIME") ||
		!strings.Contains(stderr, "leave the bridge b as it is") { // else bridge reset, which it names, hits that one
		t.Errorf("with another time: exit code %d: %s", code, stderr)
	}
	if now := statusOf(t); now.Position.Completed != live.Position.Completed || now.Totals != live.Totals ||
		now.Leases[0].Owner != live.Leases[0].Owner {
		t.Errorf("the live bridge has changed: %+v", now)
	}
	if code, stdout, stderr := call(t, "replay", "--from", "2019-01-01", "--to", "2019-02-01", "--topic", "gone"); code !=
		exitOK || !strings.Contains(stdout, "the feed begins with segment 2020/01/16/2100") {
		t.Errorf("of what the feed has not: exit code %d: %s%s", code, stdout, stderr)
	}
	for args, says := range map[string]string{
		"--topic again --name of.another":    "--name of.another is not of a replay to topic again",
		"--topic gone --name b.replay.again": "--name b.replay.again is not of a replay to topic gone",
	} {
		setenv(t, "BRIDGE_NAME", "of.another")
		setenv(t, "BRIDGE_TOPIC", "anothers")
		runToEnd(t)
		setenv(t, "BRIDGE_NAME", "b")
		setenv(t, "BRIDGE_TOPIC", changes)
		code, stdout, stderr = call(t, append([]string{"replay", "--cleanup"}, strings.Fields(args)...)...)
		if code != exitUsage || !strings.Contains(stderr, says) {
			t.Errorf("%s: exit code %d: %s%s", args, code, stdout, stderr)
		}
	}
	for range 2 {
		code, stdout, stderr = call(t, "replay", "--cleanup", "--topic", "again")
		if code == exitOK != strings.Contains(stdout, "b.replay.again.offsets is deleted") {
			t.Errorf("exit code %d: %s%s", code, stdout, stderr)
		}
	}
	if code != exitFailed || !strings.Contains(stderr, "no topic b.replay.again.offsets") {
		t.Errorf("there is nothing to clean up: exit code %d: %s", code, stderr)
	}
}

func TestReplayRefuses(t *testing.T) {
	t.Parallel()
	deliveredReal(t)
	const times = " --from 2020-05-27T16:00:00Z --to 2020-05-27T20:00:00Z"
	for args, says := range map[string]string{
		"--topic changes" + times:                               "live bridge's",
		"--topic changes.resolved" + times:                      "live bridge's",
		"--topic b.offsets" + times:                             "live bridge's",
		"--topic again --name b" + times:                        "live bridge's",
		"--cleanup --topic again --name b":                      "live bridge's",
		"--topic {container}" + times:                           "one topic",
		"--topic a/b" + times:                                   "BRIDGE_NAME",
		"--topic again --from 2020-05-27":                       "--to",
		"--topic again --from latest --to 2020-05-27T20:00:00Z": "--from: \"latest\"",
		"--topic again --from earliest --to y":                  "--to: \"y\"",
		"--topic again --from earliest --to latest":             "--to: \"latest\"",
		"--cleanup --topic again --from x":                      "--cleanup",
		times:                                                   "--topic",

		"--topic again --from x --to 2020-05-27T20:00:00Z": "--from: \"x\" is neither a time",

		"--topic again --from 2020-05-27T20:00:00Z --to 2020-05-27T16:00:00Z": "is later than --to 2020-05-27T16:00",

		"--topic again --from 1590602400000000000.0000000001 --to 1590602400000000000.0000000000": "is later than",
	} {
		if code, stdout, stderr := call(t, append([]string{"replay"}, strings.Fields(args)...)...); code != exitUsage ||
			!strings.Contains(stderr, says) {
			t.Errorf("replay %s: exit code %d: %s%s", args, code, stdout, stderr)
		}
	}
}

// An Avro key begins with the id of its schema, so a replay keeps that of the live topic: else the keys would
// be others, in other partitions. Also when it is interrupted, and the live bridge is reset meanwhile.
func TestReplayAvroKeys(t *testing.T) {
	t.Parallel()
	registry := srfake.New()
	defer registry.Close()
	c := clusterFor(t)
	setenv(t, "BRIDGE_FORMAT", "avro")
	setenv(t, "BRIDGE_REGISTRY_URL", registry.URL())
	setenv(t, "BRIDGE_DEBUG", "bundle_bytes=0")
	runToEnd(t)
	want := between(read(t, c, changes), "", "9")
	args := strings.Fields("replay --from earliest --to 2020-05-29T20:00:00Z --topic again")
	ctx, kill := context.WithCancel(t.Context())
	var ends atomic.Int32
	c.ControlKey(int16(kmsg.EndTxn), func(kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		if ends.Add(1) == 6 {
			kill()
		}
		return nil, nil, false
	})
	if code := execute(ctx, environ(t), args, io.Discard, io.Discard); code != exitFailed {
		t.Fatalf("the interrupted replay: exit code %d", code)
	}
	if code, _, stderr := call(t, "reset", "--yes"); code != exitOK {
		t.Fatal(stderr)
	}
	if code, _, stderr := call(t, args...); code != exitOK {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	got := between(read(t, c, "again"), "", "9")
	for position, r := range got {
		if o := want[position]; !bytes.Equal(o.Key, r.Key) || o.Partition != r.Partition {
			t.Errorf("%s: key %x in partition %d, was %x in %d", position, r.Key, r.Partition, o.Key, o.Partition)
		}
	}
	if len(got) == 0 {
		t.Error("there is nothing")
	}
	if code, stdout, stderr := call(t, "verify", "--feed", "--topic", "again"); code != exitOK {
		t.Errorf("verify: exit code %d: %s%s", code, stdout, stderr)
	}
	setenv(t, "BRIDGE_TOPIC", "{container}")
	code, _, stderr := call(t, append(args[:len(args)-1], "other")...)
	if code != exitUsage || !strings.Contains(stderr, "set BRIDGE_KEY_FORMAT for the replay") {
		t.Errorf("with a template: exit code %d: %s", code, stderr)
	}
}

// A replay of times after the newest segment says so in the words of its flags. The way out that it names leaves the
// live bridge where it is.
func TestReplayBehindTheFeed(t *testing.T) {
	t.Parallel()
	clusterFor(t)
	setenv(t, "BRIDGE_DEBUG", "report_interval=100ms")
	args := strings.Fields("replay --from 2021-01-20 --to 2021-05-29T18:00:00Z --topic again")
	for _, flag := range []string{"", " --name other"} {
		provoke(t, `"verdict":"degraded: the feed has no segment from --from on, 2021-01-20T00:00:00Z: nothing is `+
			`delivered until it has one","hint":"end the replay, delete its state with bridge replay --cleanup --topic `+
			`again`+flag+`, and repeat it with a --from that the feed has"`, append(args, strings.Fields(flag)...))
	}
}
