//go:build integration

package integration

import (
	"encoding/json"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/internal/testing/feedsim"
)

// What the bridge writes to real Kafka, with a real registry, holds by its own judge, in each envelope and both
// formats.
func TestVerifyForms(t *testing.T) {
	t.Parallel()
	for _, form := range []string{
		"ENVELOPE=wrapped EVENTS=all", "ENVELOPE=wrapped OPTIONS=updated,key_in_value,diff DELETES=both",
		"ENVELOPE=bare", "ENVELOPE=row",
		"ENVELOPE=row RESOLVED_TO=topic OPTIONS=none KEY_FORMAT=string", "ENVELOPE=key_only", "ENVELOPE=enriched",
		"ENVELOPE=enriched RESOLVED_TO=inline ENRICHED_PROPERTIES=source,schema OPTIONS=updated,key_in_value,diff",
		"FORMAT=avro ENVELOPE=wrapped OPTIONS=updated,key_in_value,diff", "FORMAT=avro ENVELOPE=bare RESOLVED_TO=topic",
		"FORMAT=avro ENVELOPE=key_only HEADERS=none",
		"FORMAT=avro ENVELOPE=enriched", "FORMAT=avro ENVELOPE=enriched RESOLVED_TO=inline DELETES=both",
		"DELIVERY=at_least_once",
	} {
		t.Run(form, func(t *testing.T) {
			name, _ := names(t, shared.KafkaBrokers, -1)
			settings := append(strings.Fields(form), "NAME="+name, "TOPIC="+name+".out",
				"KAFKA_BROKERS="+strings.Join(shared.KafkaBrokers, ","), "SOURCE_URL="+fileURL(t, realFeed))
			if strings.Contains(form, "avro") {
				settings = append(settings, "REGISTRY_URL="+shared.SchemaRegistryURL)
			}
			runOnce(t, settings...)
			for _, args := range [][]string{{"verify"}, {"verify", "--feed"}} {
				if p := start(t, args, settings...); p.wait(t, time.Minute) != 0 ||
					strings.Contains(p.log.String(), "BROKEN") {
					t.Errorf("%s: %s", args, p.log)
				}
			}
		})
	}
}

// Beside a bridge that is killed again and again, verify --follow holds on real Kafka, segment by segment, also after it
// was killed itself. It ends with 4 when a record comes that no event explains.
func TestVerifyFollow(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	feed, err := feedsim.New(feedsim.Dir(dir), feedsim.Spec{Seed: 32, Shards: 3, EventsPerSegment: 500, Blobs: 50,
		Versions: []int{6}})
	if err == nil {
		err = feed.Open(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	name, topic := names(t, shared.KafkaBrokers, -1)
	settings := []string{"NAME=" + name, "TOPIC=" + topic, "KAFKA_BROKERS=" + strings.Join(shared.KafkaBrokers, ","),
		"SOURCE_URL=" + fileURL(t, dir), "SESSION_TIMEOUT=1s", "COMMIT_INTERVAL=100ms", "POLL_INTERVAL=200ms"}
	follow := func() *program { return start(t, []string{"verify", "--feed", "--follow"}, settings...) }
	f := follow()
	through := func() time.Time {
		var s struct {
			Topics []struct {
				Through time.Time `json:"verified_through"`
			}
		}
		if _, body := get(f.url(t) + "/status"); json.Unmarshal([]byte(body), &s) != nil || len(s.Topics) == 0 {
			return time.Time{}
		}
		return s.Topics[0].Through
	}
	grow := func() {
		t.Helper()
		for range 2 {
			if err := feed.Append(t.Context(), 500, nil); err != nil {
				t.Fatal(err)
			}
			if err := feed.Next(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	for round := range 3 {
		p := start(t, []string{"run"}, settings...)
		p.ready(t)
		grow()
		p.signal(syscall.SIGKILL)
		p.wait(t, time.Minute)
		p = start(t, []string{"run"}, settings...)
		want := feed.Segment().Add(-16 * time.Minute) // the marker of the segment before the open one
		eventually(t, time.Minute, "all complete segments are verified", func() bool { return through().After(want) })
		p.signal(syscall.SIGKILL)
		p.wait(t, time.Minute)
		if round == 1 {
			f.signal(syscall.SIGKILL)
			f.wait(t, time.Minute)
			f = follow()
		}
	}
	foreign := kgo.Record{Topic: topic, Key: []byte(`["photos/cat.jpg"]`), Value: []byte(`{}`)}
	if err := client(t, shared.KafkaBrokers).ProduceSync(t.Context(), &foreign).FirstErr(); err != nil {
		t.Fatal(err)
	}
	grow()
	start(t, []string{"run"}, settings...)
	if code := f.wait(t, time.Minute); code != 4 || !strings.Contains(f.log.String(), "BROKEN       replay") {
		t.Errorf("exit code %d:\n%s", code, f.log)
	}
}
