package bridge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"blobfeed/envelope"
	"blobfeed/internal/fakebroker"
	"blobfeed/internal/feedsim"
	"blobfeed/internal/topicname"
	"blobfeed/internal/topics"
	"blobfeed/partitioner"
	"blobfeed/verify"
)

// simTopics are those of the simulator's containers by the template {container}.
var simTopics = []string{"_u0024_web", "backups", "photos"}

func admin(t *testing.T, c *kfake.Cluster) *kadm.Client { return fakebroker.Admin(t, c) }

// noted hands every record to a function.
type noted func(verify.Record)

func (n noted) Note(r verify.Record)     { n(r) }
func (noted) Failures() []verify.Failure { return nil }

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
	complete := verify.NewComplete()
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
	o.Topics, o.BundleBytes = byTemplate(t, "{container}"), bundle
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
			t.Errorf(
				"topic %s, of segment %d: %d of %d records, %d markers",
				name,
				found[name],
				got[name],
				want[name],
				markers[name],
			)
		}
	}
}

// A key stays on its partition until the marker, also if the topic is new, its partitions are added and the
// lease acquired again meanwhile (I5): the cursor has the pin.
func TestNewTopicIsPinned(t *testing.T) {
	t.Parallel()
	ctx, feed := t.Context(), t.TempDir()
	live, err := feedsim.New(feedsim.Dir(feed), feedsim.Spec{EventsPerSegment: 200, Blobs: 20})
	must(t, err)
	c := broker(t)
	o, _ := options(t, c, feed)
	o.Topics = byTemplate(t, "{container}")
	must(t, live.Open(ctx), live.Append(ctx, 100, nil), runOnce(t, o))
	_, err = admin(t, c).CreatePartitions(ctx, 3, simTopics...)
	must(t, err, live.Append(ctx, 100, nil), runOnce(t, o))
	if data, _ := consumeAll(t, c, simTopics, verify.NewPartition(partitions, partitioner.Murmur2)); data != 200 {
		t.Errorf("%d records", data)
	}
	must(t, live.Finalize(ctx), runOnce(t, o))
	if _, markers := consumeAll(t, c, simTopics); markers != 3*(partitions+3) {
		t.Errorf("%d markers", markers)
	}
}

// A topic of its own for the markers says, by partition, below which offset all is that they promise.
func TestMarkersTopic(t *testing.T) {
	t.Parallel()
	t.Run("by leases", func(t *testing.T) { markersTopic(t, 0) })
	t.Run("in bundles", func(t *testing.T) { markersTopic(t, 1<<20) })
}

func markersTopic(t *testing.T, bundle int64) {
	c := broker(t)
	o, _ := options(t, c, realFeed)
	o.Markers, o.BundleBytes = envelope.MarkersTopic, bundle
	o.Encoder = encoder(envelope.Options{Events: envelope.EventsAll, Markers: envelope.MarkersTopic})
	for range 2 { // the second run has nothing to say
		must(t, runOnce(t, o))
	}
	type at struct {
		updated string
		offset  int64
	}
	data := map[int32][]at{}
	inline, markers := 0, 0
	consume(t, c, noted(func(r verify.Record) {
		if r.Key == nil {
			inline++
		}
		data[r.Partition] = append(data[r.Partition], at{string(r.Header("updated")), r.Offset})
	}))
	consumeAll(t, c, []string{topicname.Markers(topic)}, noted(func(r verify.Record) {
		var m struct {
			Resolved  string
			Partition int32
			Offset    int64
		}
		must(t, json.Unmarshal(r.Value, &m))
		if m.Partition != r.Partition {
			t.Errorf("%s is on partition %d", r.Value, r.Partition)
		}
		markers++
		for _, d := range data[r.Partition] {
			if d.updated <= m.Resolved && d.offset >= m.Offset {
				t.Errorf("marker %s, but %s is at %d", r.Value, d.updated, d.offset)
			}
		}
		if all := data[r.Partition]; m.Offset > all[len(all)-1].offset+2 { // the end of its transaction follows
			t.Errorf("marker %s, but the last record is at %d", r.Value, all[len(all)-1].offset)
		}
	}))
	if inline != 0 || markers != realSegments*partitions {
		t.Errorf("%d markers, %d in the topic of the records", markers, inline)
	}
}

// The topic of markers follows the partitions of the topic it speaks of.
func TestMarkersTopicGrows(t *testing.T) {
	m, live := simulated(t, feedsim.Spec{EventsPerSegment: 200})
	c := broker(t)
	o, _ := over(t, c, m)
	o.Markers = envelope.MarkersTopic
	o.Encoder = encoder(envelope.Options{Events: envelope.EventsAll, Markers: envelope.MarkersTopic})
	must(t, live.Append(t.Context(), 10, nil), live.Next(t.Context()), runOnce(t, o))
	_, err := admin(t, c).CreatePartitions(t.Context(), 3, topic)
	must(t, err, live.Append(t.Context(), 10, nil), live.Next(t.Context()), runOnce(t, o))
	if _, markers := consumeAll(t, c, []string{topicname.Markers(topic)}); markers != 2*partitions+3 {
		t.Errorf("%d markers", markers)
	}
}

// A topic deletes what is older than its retention soon after it is there, with transactions and without: that is told.
func TestRetentionWarning(t *testing.T) {
	hour, forever := "3600000", "-1"
	for _, c := range []struct {
		retention     *string
		transactional bool
		start         string
		warns         bool
	}{
		{&hour, false, "earliest", true}, {&hour, true, "earliest", true}, {&forever, true, "earliest", false}, {&hour, true, "latest", false},
	} {
		k := broker(t)
		createTopic(t, k, topic, partitions, map[string]*string{"retention.ms": c.retention})
		o, _ := options(t, k, realFeed)
		var log bytes.Buffer
		o.Transactional, o.Log = c.transactional, slog.New(slog.NewTextHandler(&log, nil))
		var err error
		o.Start, err = ParseStart(c.start)
		must(t, err, runOnce(t, o))
		if warned := strings.Contains(log.String(), "retention.ms"); warned != c.warns {
			t.Errorf("%+v: %s", c, log.String())
		}
	}
}

// Who may create a topic, but not change its settings, is told of its retention, and goes on at once.
func TestRetentionMayNotBeSet(t *testing.T) {
	k := broker(t)
	k.ControlKey(int16(kmsg.IncrementalAlterConfigs), func(req kmsg.Request) (kmsg.Response, error, bool) {
		k.KeepControl()
		resp := req.ResponseKind().(*kmsg.IncrementalAlterConfigsResponse)
		for _, r := range req.(*kmsg.IncrementalAlterConfigsRequest).Resources {
			refused := kmsg.NewIncrementalAlterConfigsResponseResource()
			refused.ErrorCode, refused.ResourceType, refused.ResourceName = kerr.TopicAuthorizationFailed.Code, r.ResourceType, r.ResourceName
			resp.Resources = append(resp.Resources, refused)
		}
		return resp, nil, true
	})
	o, seen := options(t, k, realFeed)
	var log bytes.Buffer
	o.Log = slog.New(slog.NewTextHandler(&log, nil))
	must(t, runOnce(t, o))
	if len(seen.failed) > 0 || !strings.Contains(log.String(), "--add-config retention.ms=-1") {
		t.Errorf("%q, %s", seen.failed, log.String())
	}
}

// Another broker than the one that created a topic may not know it for some moments. Its retention is turned
// off all the same.
func TestRetentionIsSetThoughBrokersLag(t *testing.T) {
	k := broker(t)
	var lag atomic.Int32
	k.ControlKey(int16(kmsg.DescribeConfigs), func(req kmsg.Request) (kmsg.Response, error, bool) {
		k.KeepControl()
		r := req.(*kmsg.DescribeConfigsRequest).Resources[0]
		if n := lag.Load(); r.ResourceName != topic || n == 3 {
			return nil, nil, false
		}
		lag.Add(1)
		resp := req.ResponseKind().(*kmsg.DescribeConfigsResponse)
		unknown := kmsg.NewDescribeConfigsResponseResource()
		unknown.ErrorCode, unknown.ResourceType, unknown.ResourceName = kerr.UnknownTopicOrPartition.Code, r.ResourceType, r.ResourceName
		resp.Resources = append(resp.Resources, unknown)
		return resp, nil, true
	})
	o, seen := options(t, k, realFeed)
	must(t, runOnce(t, o))
	configs, err := admin(t, k).DescribeTopicConfigs(t.Context(), topic)
	must(t, err)
	rc, err := configs.On(topic, nil)
	must(t, err)
	i := slices.IndexFunc(rc.Configs, func(c kadm.Config) bool { return c.Key == "retention.ms" })
	if lag.Load() != 3 || len(seen.failed) > 0 || i < 0 || rc.Configs[i].MaybeValue() != "-1" {
		t.Errorf("asked %d times, failed %q, settings %v", lag.Load(), seen.failed, rc.Configs)
	}
}

// Markers have no key, which a compacted topic rejects. A topic of markers that somebody created so is refused at the
// start: every attempt to write to it would fail.
func TestCompactedMarkersTopic(t *testing.T) {
	c := broker(t)
	createTopic(t, c, topicname.Markers(topic), partitions, map[string]*string{"cleanup.policy": ptr("compact")})
	o, _ := options(t, c, realFeed)
	o.Markers = envelope.MarkersTopic
	var settings *SettingsError
	if err := runOnce(t, o); !errors.As(err, &settings) ||
		!strings.Contains(err.Error(), "topic changes.resolved has cleanup.policy=compact") {
		t.Errorf("err = %v", err)
	}
}

// Topics are created as what they hold needs it.
func TestCleanupPolicy(t *testing.T) {
	t.Parallel()
	for table, policy := range map[bool]string{true: "compact", false: "delete"} {
		c := broker(t)
		o, _ := options(t, c, realFeed)
		o.Markers, o.Table = envelope.MarkersTopic, table
		o.Encoder = encoder(
			envelope.Options{
				Events:   envelope.EventsAll,
				Envelope: envelope.Row,
				Deletes:  envelope.DeletesTombstone,
				Markers:  envelope.MarkersTopic,
			},
		)
		must(t, runOnce(t, o))
		configs, err := admin(t, c).DescribeTopicConfigs(t.Context(), topic, topicname.Markers(topic))
		must(t, err)
		for name, want := range map[string]string{topic: policy, topicname.Markers(topic): "delete"} {
			rc, err := configs.On(name, nil)
			must(t, err)
			i := slices.IndexFunc(rc.Configs, func(c kadm.Config) bool { return c.Key == "cleanup.policy" })
			if i < 0 || rc.Configs[i].MaybeValue() != want {
				t.Errorf("table %t: topic %s has %v", table, name, rc.Configs)
			}
		}
	}
}

// A deletion is two records, if so wished, and the second is a null with the same key and headers.
func TestDeletesBoth(t *testing.T) {
	c := broker(t)
	o, _ := options(t, c, realFeed)
	o.Encoder = encoder(envelope.Options{Events: envelope.EventsAll, Deletes: envelope.DeletesBoth})
	must(t, runOnce(t, o))
	deletions, nulls := 0, 0
	var last verify.Record
	data, _ := consume(t, c, noted(func(r verify.Record) {
		switch {
		case string(r.Value) == `{"after": null}`:
			deletions++
		case r.Value == nil:
			nulls++
			if string(r.Key) != string(last.Key) || string(last.Value) != `{"after": null}` ||
				string(r.Header("position")) != string(last.Header("position")) {
				t.Errorf("a null for %s follows %s", r.Key, last.Value)
			}
		}
		last = r
	}))
	if deletions == 0 || nulls != deletions || data != realEvents+nulls {
		t.Errorf("%d records, %d deletions, %d nulls", data, deletions, nulls)
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
	o.TopicPartitions, o.BrokerCreates = 0, true
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
	m.blobs["log/04/"+name+"/00000.avro"] = bytes.ReplaceAll(
		avro(true, shards[4]...),
		[]byte("/containers/c/"),
		[]byte("/containers/d/"),
	)
	m.segment(name, "Finalized", 60, shards)
	o, r := over(t, c, m)
	o.Topics = byTemplate(t, "{container}")
	var up atomic.Bool
	o.Encoder = func(ctx context.Context, topic string) (*envelope.Encoder, error) {
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

// Keys hold the id of their schema: with another one they would move, so it is refused (I5), before a marker and after.
func TestKeySchemaChanged(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	for _, complete := range []bool{false, true} {
		m, live := simulated(t, feedsim.Spec{EventsPerSegment: 200})
		c := broker(t)
		for i, id := range []int{7, 7, 8} {
			must(t, live.Append(ctx, 20, nil))
			if complete {
				must(t, live.Next(ctx))
			}
			o, _ := over(t, c, m)
			o.Encoder = encoder(
				envelope.Options{
					Events:    envelope.EventsAll,
					KeyFormat: envelope.KeyAvro,
					Register:  func(envelope.Subject) (int, error) { return id, nil },
				},
			)
			err := runOnce(t, o)
			var settings *SettingsError
			if i < 2 && err != nil ||
				i == 2 &&
					(!errors.As(err, &settings) || !strings.Contains(err.Error(), "schema 8 for the keys of topic changes, which were written with schema 7")) {
				t.Errorf("complete %t, run %d: %v", complete, i, err)
			}
		}
		if data, _ := consume(t, c, verify.NewPartition(partitions, partitioner.Murmur2)); data != 40 {
			t.Errorf("%d records", data)
		}
	}
}

// A new topic that takes less than those before makes the producer's batches smaller, and loses nothing.
func TestNewTopicTakesLess(t *testing.T) {
	t.Parallel()
	feed, small := t.TempDir(), "20000"
	must(t, feedsim.Write(t.Context(), feedsim.Dir(feed), feedsim.Spec{EventsPerSegment: 1000}, nil))
	c := broker(t)
	createTopic(t, c, "photos", partitions, map[string]*string{"max.message.bytes": &small})
	o, r := options(t, c, feed)
	o.Topics, o.TxnRecords = byTemplate(t, "{container}"), 10000
	must(t, runOnce(t, o))
	if data, _ := consumeAll(t, c, simTopics, promises()...); data != 1000 {
		t.Errorf("%d records", data)
	}
	if len(r.failed) != 1 || !strings.Contains(r.failed[0], errLimitChanged.Error()) {
		t.Errorf("failed: %q", r.failed)
	}
}
