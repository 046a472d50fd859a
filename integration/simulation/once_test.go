//go:build synctests && !mutation

package simulation

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"blobfeed/envelope"
)

// Five attempts of a run with --once fail in a row. The sixth works for minutes before it fails, too, which is the first
// failure of another row: the run continues, delivers everything and ends without an error.
func TestOnceBehindALongAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const row, segments = 5, 12
		p := &Plan{
			Seed: 1, Brokers: 1, Instances: 1, Leases: 1, Partitions: 1, ExactlyOnce: true,
			Markers: envelope.MarkersInline, TxnRecords: 1000, Session: 3 * time.Second, TxnTimeout: 8 * time.Second,
			Shards: 1, Blobs: 20, BlockEvents: 10, Backlog: segments,
		}
		var failures atomic.Int32
		var refused atomic.Pointer[kfake.FaultHandle]
		log := &lines{}
		w, err := newWorld(p, func(line string) {
			log.add(line)
			if strings.Contains(line, kerr.TopicAuthorizationFailed.Message) && failures.Add(1) == row {
				refused.Load().Remove()
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		refuse := func(requests int) *kfake.FaultHandle {
			return w.cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: topicName,
				Err: kerr.TopicAuthorizationFailed, Count: requests})
		}
		refused.Store(refuse(-1))
		reading, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			w.judge.read(reading)
		}()
		w.must(w.feed.Open(t.Context()))
		for range segments {
			w.append(10)
			w.turn(w.feed.Next)
		}
		began := time.Now()
		i := w.start(0, "once", true)
		i.window.behave(5*time.Second, nil) // a segment takes a quarter of a minute
		for failures.Load() < row && !i.ended() {
			time.Sleep(time.Second)
		}
		time.Sleep(time.Minute)
		if len(w.judge.missing()) == 0 || i.ended() {
			t.Errorf("the sixth attempt is over after %s: %v", time.Since(began), i.err)
		}
		refuse(1)
		<-i.done
		w.drain()
		if missing := w.judge.missing(); i.err != nil || failures.Load() != row+1 || len(missing) > 0 {
			t.Errorf("after %d failures, the run ends with %v; %d events are missing", failures.Load(), i.err, len(missing))
		}
		for _, problem := range append(w.failures, w.judge.check(true)...) {
			t.Error(problem)
		}
		if t.Failed() {
			t.Log(log.tail())
		}
		cancel()
		w.judge.cl.Close()
		<-done
		w.cluster.Close()
		time.Sleep(2 * settleLimit)
	})
}
