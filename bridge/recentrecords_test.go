package bridge

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"blobfeed/bridge/pipeline"
	"blobfeed/verify"
)

// shownRecords is an Observer of the last records of each commit, and a validator: what was shown is in the topic, at
// its place, and committed.
type shownRecords struct {
	t  *testing.T
	mu sync.Mutex
	n  int
	at map[string]pipeline.Written // by partition and offset
}

func (s *shownRecords) Committed(c Commit) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := c.Recent.Records()
	if want := min(8, c.Emitted); len(all) != want {
		s.t.Errorf("a commit of %d records shows %d", c.Emitted, len(all))
	}
	for _, r := range all {
		s.at[fmt.Sprint(r.Topic, r.Partition, "@", r.Offset)] = r
	}
	s.n += len(all)
}

func (s *shownRecords) Note(r verify.Record) {
	at := fmt.Sprint(r.Topic, r.Partition, "@", r.Offset)
	if shown, has := s.at[at]; has && shown.Key == string(r.Key) && shown.Bytes == len(r.Value) {
		delete(s.at, at)
	}
}

func (s *shownRecords) Failures() (all []verify.Failure) {
	for at, r := range s.at {
		s.t.Errorf("%s is shown with key %q, and is not there", at, r.Key)
	}
	return nil
}

// The last records of a commit are shown with their places, and never those of a transaction that was aborted.
func TestShownRecordsAreCommitted(t *testing.T) {
	for _, bundle := range []int64{0, 1 << 20} {
		for _, transactional := range []bool{true, false} {
			t.Run(fmt.Sprint(bundle, transactional), func(t *testing.T) {
				t.Parallel()
				m, _, complete := smallSegments(t, 4)
				c := broker(t)
				var ends atomic.Int64
				c.ControlKey(int16(kmsg.EndTxn), func(req kmsg.Request) (kmsg.Response, error, bool) {
					c.KeepControl()
					if n := ends.Add(1); n != 2 && n != 5 {
						return nil, nil, false
					}
					return answer(req, kerr.InvalidProducerEpoch.Code), nil, true
				})
				o, r := over(t, c, m)
				shown := &shownRecords{t: t, at: map[string]pipeline.Written{}}
				o.Pace.BundleBytes, o.Kafka.Transactional, o.Observer = bundle, transactional, Observers{r, shown}
				must(t, runOnce(t, o))
				consume(t, c, complete, shown)
				if failed := len(r.failed) > 0; shown.n == 0 || failed != transactional || complete.Left() > 0 {
					t.Errorf("%d were shown, failed: %q, %d missing", shown.n, r.failed, complete.Left())
				}
			})
		}
	}
}
