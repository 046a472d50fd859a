//go:build integration

package integration

import (
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"blobfeed/integration/stack"
)

// History of 2020, which is older than Kafka's default retention: a topic that the bridge creates keeps it; one that
// was there with the defaults loses records when the broker looks, of which the bridge has warned.
func TestOldHistoryIsKept(t *testing.T) {
	t.Parallel()
	s, err := stack.Start(t.Context(), stack.Options{Brokers: 1, KafkaProperties: map[string]string{
		"log.retention.check.interval.ms": "500", "log.initial.task.delay.ms": "500",
	}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	brokers, admin := s.KafkaBrokers, kadm.NewClient(client(t, s.KafkaBrokers))
	if _, err := admin.CreateTopic(t.Context(), partitions, 1, nil, "default"); err != nil {
		t.Fatal(err)
	}
	for _, topic := range []string{"created", "default"} {
		p := start(t, []string{"run", "--once"}, "NAME=bridge-"+topic, "TOPIC="+topic, "EVENTS=all",
			"RESOLVED_TO=topic", "KAFKA_BROKERS="+strings.Join(brokers, ","), "SOURCE_URL="+fileURL(t, realFeed))
		if code := p.wait(t, time.Minute); code != 0 ||
			strings.Contains(p.log.String(), "may be deleted at once") != (topic == "default") {
			t.Fatalf("topic %s: exit code %d:\n%s", topic, code, p.log)
		}
	}
	lost := func(topic string) (n int64) {
		offsets, err := admin.ListStartOffsets(t.Context(), topic)
		if err != nil {
			t.Fatal(err)
		}
		offsets.Each(func(o kadm.ListedOffset) { n += o.Offset })
		return n
	}
	// until the broker has looked
	for deadline := time.Now().Add(time.Minute); lost("default") == 0; time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the broker deletes nothing: is there nothing to be warned of?")
		}
	}
	if n := lost("created") + lost("created.resolved"); n != 0 {
		t.Errorf("%d records are lost", n)
	}
}
