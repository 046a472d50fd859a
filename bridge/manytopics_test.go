package bridge

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"blobfeed/envelope"
)

// The topics of a hundred containers, which two blocks are the first of, are created with a request for each block, and
// those of their markers with another one. All keep history, and the log says how many there are.
func TestTopicsOfManyContainers(t *testing.T) {
	t.Parallel()
	const n = 100
	c := broker(t)
	var requests atomic.Int32
	c.ControlKey(int16(kmsg.CreateTopics), func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		create := req.(*kmsg.CreateTopicsRequest)
		for _, topic := range create.Topics {
			if !create.ValidateOnly && strings.HasPrefix(topic.Topic, "container-") {
				requests.Add(1)
				break
			}
		}
		return nil, nil, false
	})
	var log bytes.Buffer
	o, _ := over(t, c, containers(n))
	o.Topics.Names, o.Records.Markers = byTemplate(t, "{container}"), envelope.MarkersTopic
	o.Log = slog.New(slog.NewTextHandler(&log, nil))
	must(t, runOnce(t, o))
	if have := requests.Load(); have != 4 {
		t.Errorf("%d requests", have)
	}
	made := created(t, c)
	if len(made) != 2*n {
		t.Errorf("%d topics", len(made))
	}
	if data, _ := consumeAll(t, c, made, promises()...); data != n {
		t.Errorf("%d records", data)
	}
	all, err := admin(t, c).DescribeTopicConfigs(t.Context(), made...)
	must(t, err)
	for _, topic := range all {
		for _, setting := range topic.Configs {
			if setting.Key == "retention.ms" && setting.MaybeValue() != "-1" {
				t.Errorf("topic %s has retention.ms=%s", topic.Name, setting.MaybeValue())
			}
		}
	}
	if !strings.Contains(log.String(), `msg="topics created" topics=80 since_start=100`) {
		t.Errorf("log: %.2000s", &log)
	}
}

// The leases of an instance meet the same new containers at about the same time. Only one of them asks the brokers.
func TestLeasesShareOpenings(t *testing.T) {
	t.Parallel()
	const n, shards = 30, 4
	m := newMemory()
	events := map[int][]happened{}
	for shard := range shards {
		for i := range n {
			events[shard] = append(events[shard], happened{fmt.Sprint("id-", shard, "-", i), "2026-01-01T10:00:00Z",
				fmt.Sprintf("container-%04d/blobs/%d", i, shard)})
		}
	}
	m.segment("2026/01/01/1000", "Finalized", 60, events)
	c := broker(t)
	var asked, wanted atomic.Int32
	c.ControlKey(int16(kmsg.DescribeConfigs), func(kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		asked.Add(1)
		return nil, nil, false
	})
	c.ControlKey(int16(kmsg.CreateTopics), func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		wanted.Add(int32(len(req.(*kmsg.CreateTopicsRequest).Topics)))
		return nil, nil, false
	})
	o, _ := over(t, c, m)
	o.Topics.Names, o.Pace.BundleBytes = byTemplate(t, "{container}"), 0 // else lease 0 delivers all
	must(t, runOnce(t, o))
	if data, _ := consumeAll(t, c, created(t, c), promises()...); data != n*shards {
		t.Errorf("%d records", data)
	}
	if got := asked.Load(); got > 2*n+6*shards {
		t.Errorf("asked %d times for settings, with %d topics", got, n)
	}
	if got := wanted.Load(); got > 2*n {
		t.Errorf("asked for %d new topics in place of %d", got, n)
	}
}
