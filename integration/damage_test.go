//go:build integration

package integration

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"blobfeed/internal/testing/feedsim"
	"blobfeed/verify"
)

// Bytes that are no Avro stand in a chunk, and the topic does not take the largest records: real Kafka gets both as
// dead letters, in the transactions of the records around them, and the state and verify tell of them.
func TestDeadLetters(t *testing.T) {
	t.Parallel()
	brokers := shared.KafkaBrokers
	dir, chunk := t.TempDir(), "log/00/2026/01/01/0000/00000.avro"
	if err := feedsim.Write(t.Context(), feedsim.Dir(dir), feedsim.Spec{EventsPerSegment: 500, BlockEvents: 10,
		Blobs: 50, Segments: 2}, nil); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(filepath.Join(dir, chunk))
	if err != nil {
		t.Fatal(err)
	}
	garbage := append(bytes.Repeat([]byte("\xffgarbage"), 1000), whole[len(whole)-16:]...) // up to a sync marker
	block := bytes.LastIndex(whole[:len(whole)-16], whole[len(whole)-16:]) + 16
	if err := os.WriteFile(filepath.Join(dir, chunk), append(append(bytes.Clone(whole[:block]), garbage...),
		whole[block:]...), 0o600); err != nil {
		t.Fatal(err)
	}
	name, topic := names(t, brokers, -1)
	limit := "1600" // between a deletion's record and a creation's
	configure(t, brokers, topic, "max.message.bytes", limit)
	settings := []string{"NAME=" + name, "TOPIC=" + topic, "EVENTS=all", "KAFKA_BROKERS=" + strings.Join(brokers, ","),
		"SOURCE_URL=" + fileURL(t, dir)}
	p := start(t, []string{"run", "--once"}, settings...)
	if code := p.wait(t, time.Minute); code != 1 || !strings.Contains(p.log.String(), "max.message.bytes") {
		t.Fatalf("without a dead-letter topic: exit code %d:\n%s", code, p.log)
	}
	runOnce(t, append(settings, "ON_ERROR=dead_letter")...)
	runOnce(t, append(settings, "ON_ERROR=dead_letter")...)

	events := map[string]bool{}
	var raw []byte
	for _, r := range read(t, brokers, name+".dlq") {
		switch header(r, "content") {
		case "event":
			events[string(r.Key)] = true
		case "chunk":
			raw = append(raw, r.Value...)
		}
		if header(r, "reason") == "" || header(r, "position") != string(r.Key) {
			t.Errorf("dead letter %q has the headers %v", r.Key, r.Headers)
		}
	}
	c := consume(t, brokers, topic, verify.NewUnique(), verify.NewOrder())
	c.drain(t)
	c.check(t)
	if !bytes.Equal(raw, garbage) {
		t.Errorf("%d bytes of garbage, want %d", len(raw), len(garbage))
	}
	if c.data == 0 || len(events) == 0 || int(c.data)+len(events) != 1000 || c.marks != 2*partitions {
		t.Errorf("%d records, %d events as dead letters, %d markers", c.data, len(events), c.marks)
	}
	// The feed is accounted for: what is not in the topic is there.
	checks := start(t, []string{"verify", "--feed"}, settings...)
	if code := checks.wait(t, time.Minute); code != 0 ||
		!strings.Contains(checks.log.String(), " and 1 damaged place of 8,016 bytes") {
		t.Errorf("verify --feed: exit code %d: %s", code, checks.log)
	}
	dump := start(t, []string{"dump", "--state", "--output", "json"}, settings...)
	if code := dump.wait(t, time.Minute); code != 0 ||
		!strings.Contains(dump.log.String(), `"completed":"2026/01/01/0100"`) ||
		!strings.Contains(dump.log.String(), `"dead_lettered":`) {
		t.Errorf("dump --state: exit code %d: %s", code, dump.log)
	}
}
