package bridge

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/envelope"
	"blobfeed/internal/catalog"
	"blobfeed/internal/testing/arrivals"
	"blobfeed/internal/testing/fakebroker"
	"blobfeed/internal/testing/feedsim"
	"blobfeed/internal/topics"
	"blobfeed/partitioner"
	"blobfeed/verify"
)

// simTopics are those of the simulator's containers by the template {container}.
var simTopics = []string{"_u0024_web", "backups", "photos"}

// A topic per container appears with the container's first event, has only that container's events, and gets
// each marker from then on, on every partition (I6), whichever lease found it.
func TestTopicPerContainer(t *testing.T) {
	t.Parallel()
	t.Run("by leases", func(t *testing.T) { topicPerContainer(t, 0) })
	t.Run("in bundles", func(t *testing.T) { topicPerContainer(t, 1<<20) })
}

func topicPerContainer(t *testing.T, bundle int64) {
	ctx, feed := t.Context(), t.TempDir()
	live, err := feedsim.New(feedsim.Dir(feed), feedsim.Spec{Shards: 6, EventsPerSegment: 200, BlockEvents: 10})
	must(t, err)
	c := broker(t)
	complete := arrivals.New()
	want, found := map[string]int{}, map[string]int{} // the segment in which each topic got its first record
	segment := 0
	expect := func(e feedsim.Event) {
		if e.Key == "" {
			return // Control
		}
		complete.Expect(e.ID)
		name := envelope.KafkaName(e.Container)
		if want[name] == 0 {
			found[name] = segment
		}
		want[name]++
	}
	o, _ := options(t, c, feed)
	o.Topics.Names, o.Pace.BundleBytes = byTemplate(t, "{container}"), bundle
	must(t, live.Open(ctx))
	for segment = range 3 {
		must(t, live.Append(ctx, []int{1, 100, 100}[segment], expect), live.Next(ctx))
		must(t, runOnce(t, o))
	}
	if len(want) != 3 || found["photos"]+found["backups"]+found["_u0024_web"] != 2 {
		t.Fatalf("the topics appear in segments %v: not in the first and the second", found)
	}
	got, markers := map[string]int{}, map[string]int{}
	count := noted(func(r verify.Record) {
		if r.Key == nil {
			markers[r.Topic]++
			return
		}
		got[r.Topic]++
		container, _, _ := strings.Cut(strings.TrimPrefix(string(r.Key), `["`), "/")
		if envelope.KafkaName(container) != r.Topic {
			t.Errorf("key %s is in topic %s", r.Key, r.Topic)
		}
	})
	consumeAll(t, c, simTopics, append(promises(), complete, count)...)
	for _, name := range simTopics {
		if got[name] != want[name] || markers[name] != (3-found[name])*partitions {
			t.Errorf("topic %s, of segment %d: %d of %d records, %d markers", name, found[name], got[name], want[name],
				markers[name])
		}
	}
}

// A topic that was deleted is named, and not created again in silence; when it is there again, the bridge goes on.
func TestDeletedTopic(t *testing.T) {
	t.Parallel()
	ctx, feed := t.Context(), t.TempDir()
	live, err := feedsim.New(feedsim.Dir(feed), feedsim.Spec{EventsPerSegment: 200})
	must(t, err)
	c := broker(t)
	o, r := options(t, c, feed)
	o.Once = false
	must(t, live.Open(ctx), live.Append(ctx, 100, nil))
	stop := run(t, o)
	r.await(t, func(c Commit) bool { return c.Read == 100 })
	_, err = admin(t, c).DeleteTopic(ctx, topic)
	must(t, err, live.Append(ctx, 50, nil))
	for named := false; !named; {
		<-r.failing
		r.mu.Lock()
		named = slices.ContainsFunc(r.failed, func(s string) bool { return strings.Contains(s, "topic "+topic) })
		r.mu.Unlock()
	}
	stop()
	o.Once = true
	var gone *topics.MissingError
	if err := runOnce(t, o); !errors.As(err, &gone) || gone.Topic != topic {
		t.Errorf("err = %v", err)
	}
	createTopic(t, c, topic, partitions, nil)
	must(t, runOnce(t, o))
	if data, _ := consume(t, c); data != 50 {
		t.Errorf("%d records", data)
	}
}

// With TOPIC_CREATE=broker the broker creates what is missing, with its own number of partitions.
func TestBrokerCreates(t *testing.T) {
	c := fakebroker.New(t, kfake.AllowAutoTopicCreation(), kfake.DefaultNumPartitions(5))
	o, _ := options(t, c, realFeed)
	o.Topics.Create.By = topics.ByBrokers
	must(t, runOnce(t, o))
	if data, markers := consume(t, c, verify.NewPartition(5, partitioner.Murmur2)); data != realEvents ||
		markers != 5*realSegments {
		t.Errorf("%d records, %d markers", data, markers)
	}
}

// What one topic needs and can't get, such as a registry that is down, holds up nothing else.
func TestOneTopicInTrouble(t *testing.T) {
	const name = "2026/01/01/1000"
	m, c := newMemory(), broker(t)
	shards := map[int][]happened{
		0: {{"a", "2026-01-01T10:00:00Z", "a"}},
		4: {{"b", "2026-01-01T10:00:00Z", "b"}},
	} // of one lease
	m.blobs["log/04/"+name+"/00000.avro"] = bytes.ReplaceAll(avro(true, shards[4]...), []byte("/containers/c/"),
		[]byte("/containers/d/"))
	m.segment(name, "Finalized", 60, shards)
	o, r := over(t, c, m)
	o.Topics.Names = byTemplate(t, "{container}")
	var up atomic.Bool
	o.Records.Encoder = func(ctx context.Context, topic string) (*envelope.Encoder, error) {
		if !up.Load() && topic == "d" {
			return nil, errors.New("the registry is down")
		}
		return encoder(envelope.Options{Events: envelope.EventsAll})(ctx, topic)
	}
	stop := run(t, o)
	defer stop()
	r.await(t, func(c Commit) bool { return c.Emitted == 1 })
	<-r.failing
	r.mu.Lock()
	if !strings.Contains(r.failed[0], "the registry is down") {
		t.Errorf("failed: %s", r.failed[0])
	}
	r.mu.Unlock()
	if data, _ := consumeAll(t, c, []string{"c", "d"}); data != 1 {
		t.Errorf("%d records", data)
	}
	up.Store(true)
	r.await(t, func(c Commit) bool { return c.Emitted == 2 })
}

// A first start makes nothing in Kafka before the registry has answered: what it needs may be wrong.
func TestFirstStartWaitsForTheRegistry(t *testing.T) {
	m, c := newMemory(), broker(t)
	m.segment("2026/01/01/1000", "Finalized", 60, map[int][]happened{0: {{"a", "2026-01-01T10:00:00Z", "a"}}})
	o, r := over(t, c, m)
	var up atomic.Bool
	given := o.Records.Encoder
	o.Records.Encoder = func(ctx context.Context, topic string) (*envelope.Encoder, error) {
		if !up.Load() {
			return nil, errors.New("the registry is down")
		}
		return given(ctx, topic)
	}
	stop := run(t, o)
	defer stop()
	<-r.failing
	cl, err := kgo.NewClient(o.Kafka.Client...)
	must(t, err)
	defer cl.Close()
	made, err := kadm.NewClient(cl).ListTopics(t.Context())
	must(t, err)
	if names := made.Names(); len(names) > 0 {
		t.Errorf("it has made %s", names)
	}
	up.Store(true)
	r.await(t, func(c Commit) bool { return c.Emitted == 1 })
}

// A new topic that takes less than those before makes the producer's batches smaller, and loses nothing.
func TestNewTopicTakesLess(t *testing.T) {
	t.Parallel()
	small := "20000"
	feed := writeFeed(t, feedsim.Spec{EventsPerSegment: 1000})
	c := broker(t)
	createTopic(t, c, "photos", partitions, map[string]*string{"max.message.bytes": &small})
	o, r := options(t, c, feed)
	o.Topics.Names, o.Pace.TxnRecords = byTemplate(t, "{container}"), 10000
	must(t, runOnce(t, o))
	if data, _ := consumeAll(t, c, simTopics, promises()...); data != 1000 {
		t.Errorf("%d records", data)
	}
	if len(r.failed) != 1 || !strings.Contains(r.failed[0], catalog.ErrLimitChanged.Error()) {
		t.Errorf("failed: %q", r.failed)
	}
}
