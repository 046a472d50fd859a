package fakebroker

import (
	"reflect"
	"testing"
	"unsafe"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// LeaveOutEnds makes the brokers acknowledge the next end of a transaction of a transactional id and write it to no
// partition, as Kafka 4 does where a partition has no leader at that moment. The records stay open, and the brokers
// regard the transaction as complete.
//
// kfake has no fault like that, so this makes it forget, by reflection, the partitions that the transaction has records
// in. No request is handled while a control function runs.
func LeaveOutEnds(t testing.TB, c *kfake.Cluster, id string) {
	t.Helper()
	all := reflect.ValueOf(c).Elem().FieldByName("pids").FieldByName("byTxid")
	if !all.IsValid() {
		t.Fatal("kfake keeps its transactional ids in another field")
	}
	c.ControlKey(int16(kmsg.EndTxn), func(req kmsg.Request) (kmsg.Response, error, bool) {
		if req.(*kmsg.EndTxnRequest).TransactionalID != id {
			return nil, nil, false
		}
		c.DropControl()
		parts := all.MapIndex(reflect.ValueOf(id)).Elem().FieldByName("txParts")
		reflect.NewAt(parts.Type(), unsafe.Pointer(parts.UnsafeAddr())).Elem().SetZero()
		return nil, nil, false
	})
}

// EndsAt makes a cluster report an end of a topic with one partition that is behind its first record, and answer
// fetches from there on with the offset that its leader has. If both are the same, it is as if compaction had removed
// the rest.
func EndsAt(c *kfake.Cluster, topic string, end, leader int64) {
	c.ControlKey(int16(kmsg.ListOffsets), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		req := kreq.(*kmsg.ListOffsetsRequest)
		if len(req.Topics) != 1 || len(req.Topics[0].Partitions) != 1 || req.Topics[0].Partitions[0].Timestamp != -1 {
			return nil, nil, false
		}
		resp := req.ResponseKind().(*kmsg.ListOffsetsResponse)
		p := kmsg.NewListOffsetsResponseTopicPartition()
		p.Offset = end
		resp.Topics = []kmsg.ListOffsetsResponseTopic{{Topic: topic,
			Partitions: []kmsg.ListOffsetsResponseTopicPartition{p}}}
		return resp, nil, true
	})
	c.ControlKey(int16(kmsg.Fetch), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		req := kreq.(*kmsg.FetchRequest)
		if len(req.Topics) != 1 || req.Topics[0].Partitions[0].FetchOffset == 0 {
			return nil, nil, false
		}
		resp := req.ResponseKind().(*kmsg.FetchResponse)
		p := kmsg.NewFetchResponseTopicPartition()
		p.HighWatermark, p.LastStableOffset = leader, leader
		resp.Topics = []kmsg.FetchResponseTopic{{Topic: req.Topics[0].Topic, TopicID: req.Topics[0].TopicID,
			Partitions: []kmsg.FetchResponseTopicPartition{p}}}
		return resp, nil, true
	})
}
