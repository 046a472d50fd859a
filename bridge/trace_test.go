package bridge

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"
)

// traces is a TransactionObserver.
type traces struct {
	mu    sync.Mutex
	ended []Transaction
}

func (t *traces) Ended(txn Transaction) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended = append(t.ended, txn)
}

// Every event is in one committed transaction that is reported, and every marker; the steps are in the order of the
// work. Told are also the transactions that come to nothing.
func TestTraces(t *testing.T) {
	for what, bundle := range map[string]int64{"bundles": 1 << 20, "leases": 0} {
		for _, transactional := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/%t", what, transactional), func(t *testing.T) {
				t.Parallel()
				const segments = 4
				m, _, _ := smallSegments(t, segments)
				c := broker(t)
				var refused atomic.Bool
				c.ControlKey(int16(kmsg.Produce), func(req kmsg.Request) (kmsg.Response, error, bool) {
					c.KeepControl()
					if req.(*kmsg.ProduceRequest).Topics[0].Topic != topic || refused.Swap(true) {
						return nil, nil, false
					}
					return answer(req, kerr.TopicAuthorizationFailed.Code), nil, true
				})
				o, r := over(t, c, m)
				o.Pace.BundleBytes, o.Kafka.Transactional = bundle, transactional
				o.Pace.CommitInterval, o.Pace.TxnRecords = time.Minute, 1<<20               // one bundle on any machine
				o.Kafka.Client = append(o.Kafka.Client, kgo.MaxVersions(kversion.V3_0_0())) // newer requests do not name topics
				var told traces
				o.Observer = append(o.Observer, &told)
				must(t, runOnce(t, o))

				read, markers, done, failed := 0, 0, 0, 0
				for _, txn := range told.ended {
					if txn.Err != nil {
						failed++
						if !errors.Is(txn.Err, kerr.TopicAuthorizationFailed) || txn.Publishing.Ended.IsZero() {
							t.Errorf("failed: %+v", txn)
						}
						continue
					}
					read, markers, done = read+txn.Read, markers+txn.Markers, done+txn.Segments
					steps := []Span{txn.Publishing, txn.Committing}
					if txn.Read > 0 {
						steps = []Span{txn.Reading, txn.Encoding, txn.Publishing, txn.Committing}
						if txn.Blocks == 0 || txn.Cursor == "" && bundle == 0 {
							t.Errorf("%d blocks, cursor %q", txn.Blocks, txn.Cursor)
						}
					}
					for i, s := range steps {
						if s.Began.IsZero() || s.Ended.Before(s.Began) || s.Busy <= 0 {
							t.Errorf("step %d: %+v", i, s)
						}
						if i > 0 && s.Began.Before(steps[i-1].Began) {
							t.Errorf("step %d begins before the one that it follows", i)
						}
					}
					if !txn.Committing.Began.Equal(txn.Publishing.Ended) {
						t.Errorf("publishing %+v, committing %+v", txn.Publishing, txn.Committing)
					}
				}
				want := segments * partitions
				if bundle > 0 && !transactional { // markers behind all of its records
					want = partitions
				}
				if read != r.Read || markers != want || done != segments || failed != 1 {
					t.Errorf("%d of %d events, %d markers, %d segments, %d failed", read, r.Read, markers, done, failed)
				}
			})
		}
	}
}
