package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"blobfeed/internal/find"
	"blobfeed/internal/testing/feedsim"
)

// garble puts bytes that are no block in front of the last block of a chunk.
func garble(t *testing.T, chunk string) {
	t.Helper()
	whole, err := os.ReadFile(chunk)
	if err != nil {
		t.Fatal(err)
	}
	sync := whole[len(whole)-16:]
	last := bytes.LastIndex(whole[:len(whole)-16], sync) + 16
	garbled := slices.Concat(whole[:last], bytes.Repeat([]byte("\xffgarbage"), 2500), whole[last:])
	if err := os.WriteFile(chunk, garbled, 0o600); err != nil {
		t.Fatal(err)
	}
}

// What went to the dead-letter topic is accounted for there, if it is there as the feed has it.
func TestVerifyDeadLetters(t *testing.T) {
	t.Parallel()
	ctx, dir := t.Context(), t.TempDir()
	feed, err := feedsim.New(feedsim.Dir(dir), feedsim.Spec{EventsPerSegment: 100, BlockEvents: 10, Blobs: 20})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(feed.Open(ctx), feed.Append(ctx, 100, nil), feed.Next(ctx)); err != nil {
		t.Fatal(err)
	}
	cl := delivered(t, dir, "ON_ERROR=dead_letter")
	limit := "1600" // between what a deletion takes and what a creation takes; too little for the garbage, too
	set := []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "max.message.bytes", Value: &limit}}
	if _, err := kadm.NewClient(cl).AlterTopicConfigs(ctx, set, written); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(feed.Append(ctx, 100, nil), feed.Finalize(ctx)); err != nil {
		t.Fatal(err)
	}
	garble(t, filepath.Join(dir, "log/00/2026/01/01/0100/00000.avro"))
	if code, _, stderr := call(t, "run", "--once"); code != exitOK {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	code, stdout, stderr := call(t, "verify", "--feed", "--output", "json")
	r, _ := statusFrom(t, stdout)
	if code != exitOK {
		t.Fatalf("exit code %d: %s%s", code, stdout, stderr)
	}
	// The garbage takes the block behind it along.
	d := r.Feed.DeadLetters
	if d == nil || d.Events == 0 || d.Events+r.Feed.Required != 190 || d.Places != 1 || d.Bytes < 20000 ||
		d.Letters != d.Events+1 ||
		r.Feed.Required != r.Records {
		t.Fatalf("%+v, %+v, %d records", r.Feed, d, r.Records)
	}
	if _, stdout, _ := call(t, "verify", "--feed"); !strings.Contains(stdout, "topic blobfeed.dlq: ") {
		t.Errorf("it is not said: %s", stdout)
	}

	all := readBy(t, cl.Opts(), d.Topic)
	first := func(content string) int {
		return slices.IndexFunc(all, func(r *kgo.Record) bool { return header(r, "content") == content })
	}
	for name, c := range map[string]struct {
		letters []*kgo.Record
		code    int
		says    string
	}{
		"all of them, some twice": {slices.Concat(all, all[:3]), exitOK, ""},
		"an event is missing": {slices.Delete(slices.Clone(all), first("event"), first("event")+1), exitBroken,
			"lacks 1 of"},
		"another event": {func() []*kgo.Record {
			rs, other := slices.Clone(all), *all[first("event")]
			other.Value = []byte(`{"ID":"another"}`)
			rs[first("event")] = &other
			return rs
		}(), exitBroken, "1 of "},
		"a part is missing": {slices.Delete(slices.Clone(all), first("chunk"), first("chunk")+1), exitFailed,
			"topic blobfeed.dlq does not have these bytes"},
		"other bytes": {func() []*kgo.Record {
			rs, other := slices.Clone(all), *all[first("chunk")]
			other.Value = bytes.ToUpper(other.Value)
			rs[first("chunk")] = &other
			return rs
		}(), exitFailed, "topic blobfeed.dlq does not have these bytes"},
		"nothing": {nil, exitFailed, "topic blobfeed.dlq does not have these bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			ends, err := kadm.NewClient(cl).ListEndOffsets(ctx, d.Topic)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := kadm.NewClient(cl).DeleteRecords(ctx, ends.Offsets()); err != nil {
				t.Fatal(err)
			}
			produce(t, cl, d.Topic, c.letters)
			code, stdout, stderr := call(t, "verify", "--feed")
			if code != c.code || !strings.Contains(stdout+stderr, c.says) {
				t.Errorf("exit code %d: %s%s", code, stdout, stderr)
			}
		})
	}
}

// A dead letter that somebody else wrote does not hide that a record is missing.
func TestVerifyForgedDeadLetter(t *testing.T) {
	t.Parallel()
	cl := delivered(t, "../../testdata/real-2020", "ON_ERROR=dead_letter")
	rs := readBy(t, cl.Opts(), written)
	i := slices.IndexFunc(rs, func(r *kgo.Record) bool { return r.Key != nil })
	place := header(rs[i], "position")
	letter := &kgo.Record{Key: []byte(place), Value: []byte(`{"event_id":"` + header(rs[i], "ce_id") + `"}`)}
	for _, h := range []string{"content=event", "offset=" + strings.Split(place, "/")[6], "part=1/1"} {
		name, value, _ := strings.Cut(h, "=")
		letter.Headers = append(letter.Headers, kgo.RecordHeader{Key: name, Value: []byte(value)})
	}
	produce(t, cl, "blobfeed.dlq", []*kgo.Record{letter})
	if code, stdout, stderr := call(t, "verify", "--feed"); code != exitOK {
		t.Fatalf("the event is there: exit code %d: %s%s", code, stdout, stderr)
	}
	if _, err := kadm.NewClient(cl).DeleteTopics(t.Context(), written); err != nil { // the state stays
		t.Fatal(err)
	}
	produce(t, cl, written, slices.Delete(rs, i, i+1))
	code, stdout, stderr := call(t, "verify", "--feed")
	if code != exitFailed || !strings.Contains(stderr, "blobfeed.dlq has 1 dead letter more than the bridge has written") {
		t.Errorf("exit code %d: %s%s", code, stdout, stderr)
	}
}

// Events for which there is no topic are dead letters, and no topic lacks them.
func TestVerifyDeadLettersWithoutTopic(t *testing.T) {
	t.Parallel()
	cl := delivered(t, "../../testdata/real-2020", "ON_ERROR=dead_letter", "TOPIC=of.{container}", "TOPIC_LIMIT=10")
	if code, stdout, stderr := call(t, "verify", "--feed"); code == exitBroken {
		t.Errorf("exit code %d: %s%s", code, stdout, stderr)
	}
	letters := readBy(t, cl.Opts(), "blobfeed.dlq")
	event := map[string]string{}
	for _, name := range []string{"dead_letter", "fail"} { // the letters stay when the setting goes
		setenv(t, "BRIDGE_ON_ERROR", name)
		if err := json.Unmarshal(letters[0].Value, &event); err != nil && event["event_id"] == "" {
			t.Fatal(err)
		}
		for _, f := range found(t, "--id", event["event_id"]) {
			if f.Fate != find.DeadLetter || f.Record == nil {
				t.Errorf("BRIDGE_ON_ERROR=%s: %+v", name, f)
			}
		}
	}
	if _, err := kadm.NewClient(cl).DeleteTopics(t.Context(), "blobfeed.dlq"); err != nil {
		t.Fatal(err)
	}
	produce(t, cl, "blobfeed.dlq", letters[1:])
	if code, stdout, stderr := call(t, "verify", "--feed"); code != exitBroken ||
		!strings.Contains(stdout, "the feed has 1 event for this topic") {
		t.Errorf("exit code %d: %s%s", code, stdout, stderr)
	}
}

// The dead letters of a replay are found when its state is deleted, and no bridge takes them for records.
func TestVerifyDeadLettersOfAReplay(t *testing.T) {
	t.Parallel()
	cl := delivered(t, simulated(t, 3, ""), "ON_ERROR=dead_letter")
	limit := "1500"
	configs := map[string]*string{"max.message.bytes": &limit}
	if _, err := kadm.NewClient(cl).CreateTopic(t.Context(), 3, 1, configs, "again"); err != nil {
		t.Fatal(err)
	}
	for _, args := range []string{
		"replay --from earliest --to 2026-01-01T01:30:00Z --topic again", "replay --cleanup --topic again",
	} {
		if code, _, stderr := call(t, strings.Fields(args)...); code != exitOK {
			t.Fatal(stderr)
		}
	}
	setenv(t, "BRIDGE_END_TIME", "2026-01-01T01:30:00Z")
	code, stdout, stderr := call(t, "verify", "--feed", "--topic", "again", "--output", "json")
	r, _ := statusFrom(t, stdout)
	if d := r.Feed.DeadLetters; code != exitOK || d == nil || d.Events == 0 || r.Records == 0 {
		t.Errorf("exit code %d: %s%s", code, stdout, stderr)
	}
	code, stdout, stderr = call(t, "verify", "--topic", "blobfeed.replay.again.dlq")
	if code != exitSettings || !strings.Contains(stderr, "holds dead letters of a bridge") {
		t.Errorf("exit code %d: %s%s", code, stdout, stderr)
	}
}

// Who may read the topic and the state needs no permission for dead letters that the settings do not make.
func TestVerifyMayNotReadDeadLetters(t *testing.T) {
	t.Parallel()
	var acls []kfake.ACL
	for _, topic := range []string{written, "blobfeed.offsets"} {
		for _, op := range []kmsg.ACLOperation{kmsg.ACLOperationRead, kmsg.ACLOperationDescribeConfigs} {
			acls = append(
				acls,
				kfake.ACL{
					Resource:  kmsg.ACLResourceTypeTopic,
					Name:      topic,
					Pattern:   kmsg.ACLResourcePatternTypeLiteral,
					Operation: op,
					Allow:     true,
				},
			)
		}
	}
	deliveredTo(
		t,
		"../../testdata/real-2020",
		[]kfake.Opt{
			kfake.EnableSASL(),
			kfake.EnableACLs(),
			kfake.Superuser("PLAIN", "root", "secret"),
			kfake.User("PLAIN", "reader", "secret", acls...),
		},
		"KAFKA_SASL_MECHANISM=PLAIN",
		"KAFKA_SASL_USERNAME=root",
		"KAFKA_SASL_PASSWORD=secret",
	)
	setenv(t, "BRIDGE_KAFKA_SASL_USERNAME", "reader")
	if code, stdout, stderr := call(t, "verify", "--feed"); code != exitOK {
		t.Errorf("exit code %d: %s%s", code, stdout, stderr)
	}
	setenv(t, "BRIDGE_ON_ERROR", "dead_letter")
	if code, _, stderr := call(t, "verify", "--feed"); code != exitFailed ||
		!strings.Contains(stderr, "blobfeed.dlq") ||
		!strings.Contains(stderr, "TOPIC_AUTHORIZATION_FAILED") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

// The permissions with which the bridge writes a topic do not suffice to read it, and verify says where they
// are listed.
func TestVerifyMayNotReadTopic(t *testing.T) {
	t.Parallel()
	var acls []kfake.ACL
	for topic, op := range map[string]kmsg.ACLOperation{
		written: kmsg.ACLOperationWrite, "blobfeed.offsets": kmsg.ACLOperationRead,
	} {
		for _, op := range []kmsg.ACLOperation{op, kmsg.ACLOperationDescribeConfigs} {
			acls = append(
				acls,
				kfake.ACL{
					Resource:  kmsg.ACLResourceTypeTopic,
					Name:      topic,
					Pattern:   kmsg.ACLResourcePatternTypeLiteral,
					Operation: op,
					Allow:     true,
				},
			)
		}
	}
	deliveredTo(
		t,
		"../../testdata/real-2020",
		[]kfake.Opt{
			kfake.EnableSASL(),
			kfake.EnableACLs(),
			kfake.Superuser("PLAIN", "root", "secret"),
			kfake.User("PLAIN", "writer", "secret", acls...),
		},
		"KAFKA_SASL_MECHANISM=PLAIN",
		"KAFKA_SASL_USERNAME=root",
		"KAFKA_SASL_PASSWORD=secret",
	)
	setenv(t, "BRIDGE_KAFKA_SASL_USERNAME", "writer")
	if code, _, stderr := call(t, "verify"); code != exitFailed || !strings.Contains(stderr, "topic "+written) ||
		!strings.HasSuffix(stderr, "see docs/security.md\n") { // not bridge check, which is about run
		t.Errorf("exit code %d: %s", code, stderr)
	}
}
