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
