package bridge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"blobfeed/bridge/pipeline"
	"blobfeed/envelope"
	"blobfeed/internal/history"
	"blobfeed/internal/testing/feedsim"
	"blobfeed/source"
	"blobfeed/verify"
)

const deadTopic = "test.dlq"

// dead returns the records of the dead-letter topic.
func dead(t *testing.T, c *kfake.Cluster) (letters []verify.Record) {
	t.Helper()
	consumeAll(t, c, []string{deadTopic}, noted(func(r verify.Record) { letters = append(letters, r) }))
	return letters
}

// damagedFeed is a feed of two segments; in the first, bytes stand between two chunks' worth of good blocks.
func damagedFeed(t *testing.T, garbage []byte) (dir, chunk string, at int) {
	t.Helper()
	dir = writeFeed(t, feedsim.Spec{EventsPerSegment: 50, BlockEvents: 10, Segments: 2})
	chunk = "log/00/2026/01/01/0000/00000.avro"
	whole, err := os.ReadFile(filepath.Join(dir, chunk))
	if err != nil {
		t.Fatal(err)
	}
	h := bytes.LastIndex(whole[:len(whole)-16], whole[len(whole)-16:]) + 16 // where the last block begins
	damaged := append(bytes.Clone(whole[:h]), garbage...)
	if err := os.WriteFile(filepath.Join(dir, chunk), append(damaged, whole[h:]...), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir, chunk, h
}

// Damage goes to the dead-letter topic, byte for byte, and everything around it is delivered, once.
func TestDeadLetter(t *testing.T) {
	t.Parallel()
	for name, limit := range map[string]string{"whole": "", "in parts": "9000"} {
		t.Run(name, func(t *testing.T) {
			garbage := bytes.Repeat([]byte("\xffgarbage"), 2500)
			feed, chunk, at := damagedFeed(t, garbage)
			c := broker(t)
			o, r := options(t, c, feed)
			o.Topics.DeadLetter = deadTopic
			if limit != "" {
				createTopic(t, c, topic, partitions, map[string]*string{"max.message.bytes": &limit})
			}
			for range 2 { // the second run finds nothing new
				if err := runOnce(t, o); err != nil {
					t.Fatal(err)
				}
			}
			data, markers := consume(t, c, promises()...)
			// The marker behind the garbage is that of the last block: what is before it is lost together with
			// the garbage.
			if data != 90 || markers != 2*partitions {
				t.Errorf("%d records and %d markers", data, markers)
			}
			whole, err := os.ReadFile(filepath.Join(feed, chunk))
			if err != nil {
				t.Fatal(err)
			}
			var got []byte
			letters := dead(t, c)
			for _, l := range letters {
				got = append(got, l.Value...)
			}
			if !bytes.Equal(got, whole[at:]) || len(letters) != r.Dead || (len(letters) > 1) != (limit != "") {
				t.Errorf("%d dead letters with %d bytes, want %d", len(letters), len(got), len(whole)-at)
			}
			first := letters[0]
			if string(first.Header("blob")) != chunk || string(first.Header("content")) != "chunk" ||
				!strings.Contains(string(first.Header("reason")), "offset") ||
				!strings.HasPrefix(string(first.Header("position")), "2026/01/01/0000/00/00000/") ||
				string(first.Header("part")) == "" {
				t.Errorf("headers %v", first.Headers)
			}
		})
	}
}

// A record that the topic does not take stops its shard, naming the setting; or it becomes a dead letter, as JSON.
func TestTooLarge(t *testing.T) {
	t.Parallel()
	const events = 50
	limit := "1600" // between what a deletion takes and what a creation takes
	feed := writeFeed(t, feedsim.Spec{EventsPerSegment: events, BlockEvents: 10, Blobs: 10})
	c := broker(t)
	createTopic(t, c, topic, partitions, map[string]*string{"max.message.bytes": &limit})
	o, _ := options(t, c, feed)
	var tooLarge *pipeline.TooLargeError
	if err := runOnce(t, o); !errors.As(err, &tooLarge) || !strings.Contains(err.Error(), "max.message.bytes") {
		t.Fatalf("err = %v", err)
	}
	o.Topics.DeadLetter = deadTopic
	if err := runOnce(t, o); err != nil {
		t.Fatal(err)
	}
	data, _ := consume(t, c, promises()...)
	whole := map[string][]byte{} // letters by position, their parts put together
	for _, l := range dead(t, c) {
		if string(l.Header("content")) != "event" {
			t.Errorf("headers %v", l.Headers)
		}
		whole[string(l.Key)] = append(whole[string(l.Key)], l.Value...)
	}
	if data == 0 || len(whole) == 0 || data+len(whole) != events {
		t.Errorf("%d records and %d dead letters of %d events", data, len(whole), events)
	}
	for _, text := range whole {
		var event struct {
			ID string `json:"event_id"`
		}
		if err := json.Unmarshal(text, &event); err != nil || event.ID == "" {
			t.Errorf("%v: %s", err, text)
		}
	}
}

// The operator raises the limit of the topic: the shard that waits goes on by itself.
func TestLimitRaised(t *testing.T) {
	t.Parallel()
	low, high := "1500", "1000000"
	feed := writeFeed(t, feedsim.Spec{EventsPerSegment: 50})
	c := broker(t)
	createTopic(t, c, topic, partitions, map[string]*string{"max.message.bytes": &low})
	o, r := options(t, c, feed)
	stop := run(t, o)
	wait := func(what string, on <-chan struct{}) {
		t.Helper()
		select {
		case <-on:
		case <-time.After(30 * time.Second):
			t.Fatalf("waiting for %s in vain", what)
		}
	}
	wait("the refusal", r.failing)
	setTopic(t, c, topic, "max.message.bytes", high)
	wait("a commit", r.changed)
	stop()
	if data, _ := consume(t, c, promises()...); data != 50 {
		t.Errorf("%d records", data)
	}
}

// A dead letter comes once, also when what is behind it in the block has to be tried again.
func TestDeadLetterOnce(t *testing.T) {
	m := newMemory()
	m.segment("2026/01/01/0000", "Finalized", 60,
		map[int][]happened{0: {{"1", "no time", "a"}, {"2", "2026-01-01T00:10:00Z", "b"}}})
	c := broker(t)
	o, r := over(t, c, m)
	o.Topics.DeadLetter, o.Pace.BundleBytes, o.Topics.Names = deadTopic, 0, byTemplate(t, "t-{container}")
	var err error
	o.Feed.Start, err = history.ParseStart("2025-01-01T00:00:00Z") // so that times are read before the topic is
	must(t, err)
	encoder, away := o.Records.Encoder, true
	o.Records.Encoder = func(ctx context.Context, topic string) (*envelope.Encoder, error) {
		if away {
			away = false
			return nil, errors.New("the registry is away")
		}
		return encoder(ctx, topic)
	}
	must(t, runOnce(t, o))
	if letters := dead(t, c); len(letters) != 1 || r.Dead != 1 || r.failures("the registry is away") != 1 {
		t.Errorf("%d letters, %+v", len(letters), r.Commit)
	}
}

// A damaged chunk stops its lease and is named; what is before it is delivered, and nothing is skipped (I8).
func TestDamagedChunk(t *testing.T) {
	t.Parallel()
	feed := writeFeed(t, feedsim.Spec{EventsPerSegment: 50, BlockEvents: 10, Segments: 2})
	garbage := []byte("garbage, and quite a lot of it, so that it is a block")
	must(t, feedsim.Dir(feed).Append(t.Context(), "log/00/2026/01/01/0000/00000.avro", garbage))
	c := broker(t)
	o, _ := options(t, c, feed)
	err := runOnce(t, o)
	var damage *source.DamageError
	if !errors.As(err, &damage) || damage.Blob != "log/00/2026/01/01/0000/00000.avro" {
		t.Errorf("err = %v", err)
	}
	if data, markers := consume(t, c, promises()...); data != 50 || markers != 0 {
		t.Errorf("%d records and %d markers", data, markers)
	}
}
