package bridge

import (
	"bytes"
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
	"blobfeed/internal/history"
	"blobfeed/internal/plain"
)

// Topics are created as what they hold needs it.
func TestCleanupPolicy(t *testing.T) {
	t.Parallel()
	for table, policy := range map[bool]string{true: "compact", false: "delete"} {
		c := broker(t)
		o, _ := options(t, c, realFeed)
		o.Records.Markers, o.Topics.Create.Table = envelope.MarkersTopic, table
		o.Records.Encoder = encoder(
			envelope.Options{
				Events:   envelope.EventsAll,
				Envelope: envelope.Row,
				Deletes:  envelope.DeletesTombstone,
				Markers:  envelope.MarkersTopic,
			},
		)
		must(t, runOnce(t, o))
		configs, err := admin(t, c).DescribeTopicConfigs(t.Context(), topic, plain.MarkerTopic(topic))
		must(t, err)
		for name, want := range map[string]string{topic: policy, plain.MarkerTopic(topic): "delete"} {
			rc, err := configs.On(name, nil)
			must(t, err)
			i := slices.IndexFunc(rc.Configs, func(c kadm.Config) bool { return c.Key == "cleanup.policy" })
			if i < 0 || rc.Configs[i].MaybeValue() != want {
				t.Errorf("table %t: topic %s has %v", table, name, rc.Configs)
			}
		}
	}
}

// A topic deletes records older than its retention soon after they are written. The bridge warns of that.
func TestRetentionWarning(t *testing.T) {
	hour, forever := "3600000", "-1"
	for _, c := range []struct {
		retention     *string
		transactional bool
		start         string
		warns         bool
	}{
		{&hour, false, "earliest", true},
		{&hour, true, "earliest", true},
		{&forever, true, "earliest", false},
		{&hour, true, "latest", false},
	} {
		k := broker(t)
		createTopic(t, k, topic, partitions, map[string]*string{"retention.ms": c.retention})
		o, _ := options(t, k, realFeed)
		var log bytes.Buffer
		o.Kafka.Transactional, o.Log = c.transactional, slog.New(slog.NewTextHandler(&log, nil))
		var err error
		o.Feed.Start, err = history.ParseStart(c.start)
		must(t, err, runOnce(t, o))
		if warned := strings.Contains(log.String(), "retention.ms"); warned != c.warns {
			t.Errorf("%+v: %s", c, log.String())
		}
	}
}

// A bridge that may not change the settings of a topic warns of the retention and continues.
func TestRetentionMayNotBeSet(t *testing.T) {
	k := broker(t)
	k.ControlKey(int16(kmsg.IncrementalAlterConfigs), func(req kmsg.Request) (kmsg.Response, error, bool) {
		k.KeepControl()
		resp := req.ResponseKind().(*kmsg.IncrementalAlterConfigsResponse)
		for _, r := range req.(*kmsg.IncrementalAlterConfigsRequest).Resources {
			refused := kmsg.NewIncrementalAlterConfigsResponseResource()
			refused.ErrorCode = kerr.TopicAuthorizationFailed.Code
			refused.ResourceType, refused.ResourceName = r.ResourceType, r.ResourceName
			resp.Resources = append(resp.Resources, refused)
		}
		return resp, nil, true
	})
	o, seen := options(t, k, realFeed)
	createTopic(t, k, topic, partitions, map[string]*string{"cleanup.policy": new("delete")}) // by a former version
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
	lag := unknownFor(k, topic, 3)
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

// An instance that starts while another one creates the state topic tries again.
func TestStateTopicAppearsMeanwhile(t *testing.T) {
	k := broker(t)
	o, seen := options(t, k, realFeed)
	must(t, runOnce(t, o))
	lag := unknownFor(k, o.offsetsTopic(), 1)
	must(t, runOnce(t, o))
	if lag.Load() != 1 || len(seen.failed) != 1 {
		t.Errorf("asked %d times, failed %q", lag.Load(), seen.failed)
	}
}

// unknownFor makes a broker answer, that number of times, that it does not know a topic. It returns how often it has
// done so.
func unknownFor(k *kfake.Cluster, topic string, times int32) *atomic.Int32 {
	var lag atomic.Int32
	k.ControlKey(int16(kmsg.DescribeConfigs), func(req kmsg.Request) (kmsg.Response, error, bool) {
		k.KeepControl()
		r := req.(*kmsg.DescribeConfigsRequest).Resources[0]
		if n := lag.Load(); r.ResourceName != topic || n == times {
			return nil, nil, false
		}
		lag.Add(1)
		resp := req.ResponseKind().(*kmsg.DescribeConfigsResponse)
		unknown := kmsg.NewDescribeConfigsResponseResource()
		unknown.ErrorCode = kerr.UnknownTopicOrPartition.Code
		unknown.ResourceType, unknown.ResourceName = r.ResourceType, r.ResourceName
		resp.Resources = append(resp.Resources, unknown)
		return resp, nil, true
	})
	return &lag
}
