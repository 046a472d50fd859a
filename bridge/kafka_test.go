package bridge

import (
	"errors"
	"fmt"
	"reflect"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// errDropped ends the connection in place of an answer.
var errDropped = errors.New("dropped")

// answer makes the response to a request that says code in all places. With reflection, since each kind has
// them elsewhere.
func answer(req kmsg.Request, code int16) kmsg.Response {
	resp := req.ResponseKind()
	resp.SetVersion(req.GetVersion())
	switch req := req.(type) {
	case *kmsg.ProduceRequest:
		for _, rt := range req.Topics {
			t := kmsg.NewProduceResponseTopic()
			t.Topic, t.TopicID = rt.Topic, rt.TopicID
			for _, rp := range rt.Partitions {
				p := kmsg.NewProduceResponseTopicPartition()
				p.Partition, p.ErrorCode = rp.Partition, code
				t.Partitions = append(t.Partitions, p)
			}
			resp.(*kmsg.ProduceResponse).Topics = append(resp.(*kmsg.ProduceResponse).Topics, t)
		}
	default:
		reflect.ValueOf(resp).Elem().FieldByName("ErrorCode").SetInt(int64(code))
	}
	return resp
}

// What brokers answer when they are busy, move or restart, at any step of a transaction: it continues, and
// nothing is lost or comes twice. A short run has each answer in bundles or to leases, in turn.
func TestBrokersRefuse(t *testing.T) {
	type fault struct {
		key   kmsg.Key
		err   *kerr.Error // nil: the connection ends
		from  int64       // the first request that is hit
		times int64
	}
	for i, f := range []fault{
		{kmsg.InitProducerID, kerr.ConcurrentTransactions, 1, 3},
		{kmsg.InitProducerID, kerr.NotCoordinator, 1, 2},
		{kmsg.InitProducerID, kerr.CoordinatorLoadInProgress, 2, 2},
		{kmsg.InitProducerID, nil, 1, 1},
		{kmsg.Produce, kerr.NotLeaderForPartition, 2, 2},
		{kmsg.Produce, kerr.NotEnoughReplicas, 3, 2},
		{kmsg.Produce, kerr.RequestTimedOut, 3, 1},
		{kmsg.Produce, kerr.ConcurrentTransactions, 2, 2},
		{kmsg.Produce, kerr.TopicAuthorizationFailed, 3, 1},
		{kmsg.Produce, kerr.InvalidProducerEpoch, 4, 1},
		{kmsg.Produce, nil, 3, 1},
		{kmsg.EndTxn, kerr.ConcurrentTransactions, 2, 3},
		{kmsg.EndTxn, kerr.NotCoordinator, 2, 1},
		{kmsg.EndTxn, kerr.CoordinatorNotAvailable, 3, 1},
		{kmsg.EndTxn, kerr.InvalidProducerEpoch, 2, 1}, // the transaction timed out
		{kmsg.EndTxn, kerr.ProducerFenced, 3, 1},
		{kmsg.EndTxn, kerr.TransactionalIDAuthorizationFailed, 2, 1},
		{kmsg.EndTxn, nil, 2, 1},
		{kmsg.FindCoordinator, kerr.CoordinatorNotAvailable, 1, 2},
		{kmsg.JoinGroup, kerr.CoordinatorLoadInProgress, 1, 1},
	} {
		name := "connection"
		if f.err != nil {
			name = f.err.Message
		}
		for what, bundle := range map[string]int64{"bundles": 1 << 20, "leases": 0} {
			if testing.Short() && (bundle == 0) == (i%2 == 0) {
				continue
			}
			t.Run(fmt.Sprintf("%s/%s/%s", kmsg.NameForKey(int16(f.key)), name, what), func(t *testing.T) {
				t.Parallel()
				m, _, complete := smallSegments(t, 4)
				c := broker(t)
				var asked atomic.Int64
				hit := func(req kmsg.Request) (kmsg.Response, error, bool) {
					c.KeepControl()
					if n := asked.Add(1); n < f.from || n >= f.from+f.times {
						return nil, nil, false
					}
					if f.err == nil {
						return nil, errDropped, true
					}
					return answer(req, f.err.Code), nil, true
				}
				c.ControlKey(int16(f.key), hit)
				o, _ := over(t, c, m)
				o.Pace.BundleBytes = bundle
				must(t, runOnce(t, o))
				data, markers := consume(t, c, append(promises(), complete)...)
				if data != 5*20 || markers != 4*partitions || complete.Left() > 0 {
					t.Errorf("%d records, %d markers, %d missing", data, markers, complete.Left())
				}
				if asked.Load() < f.from {
					t.Errorf("there were %d such requests", asked.Load())
				}
			})
		}
	}
}
