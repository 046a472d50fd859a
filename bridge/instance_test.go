package bridge

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// If replicas are missing, brokers reject records, and the client repeats them silently. The bridge names the topic,
// and continues when the replicas are back.
func TestMissingReplicasAreNamed(t *testing.T) {
	t.Parallel()
	c := broker(t)
	o, r := options(t, c, realFeed)
	least := "2"
	createTopic(t, c, topic, partitions, map[string]*string{"min.insync.replicas": &least})
	var back atomic.Bool
	c.ControlKey(int16(kmsg.Produce), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		req := kreq.(*kmsg.ProduceRequest)
		resp := req.ResponseKind().(*kmsg.ProduceResponse)
		for _, rt := range req.Topics {
			to := kmsg.NewProduceResponseTopic()
			to.Topic, to.TopicID = rt.Topic, rt.TopicID
			for _, p := range rt.Partitions {
				answer := kmsg.NewProduceResponseTopicPartition()
				answer.Partition, answer.ErrorCode = p.Partition, kerr.NotEnoughReplicas.Code
				to.Partitions = append(to.Partitions, answer)
			}
			resp.Topics = append(resp.Topics, to)
		}
		return resp, nil, !back.Load()
	})
	stop := run(t, o)
	defer stop()
	named := func(s string) bool {
		return strings.Contains(s, "topic changes takes no records: partition 0 has 1 replica in sync")
	}
	for said, deadline := false, time.After(20*time.Second); !said; {
		select {
		case <-r.failing:
		case <-deadline:
			t.Fatalf("not named: %q", r.failed)
		}
		r.mu.Lock()
		said = slices.ContainsFunc(r.failed, named)
		r.mu.Unlock()
	}
	back.Store(true)
	r.await(t, func(c Commit) bool { return c.Read == realEvents })
}
