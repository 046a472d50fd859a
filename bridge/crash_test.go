package bridge

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"blobfeed/internal/testing/arrivals"
	"blobfeed/internal/testing/feedsim"
	"blobfeed/verify"
)

// A crash in the middle, at any commit: with transactions nothing comes twice; without, ids tell what does, and
// what comes for the first time is in order.
func TestReplayAfterACrash(t *testing.T) {
	t.Parallel()
	for name, transactional := range map[string]bool{"exactly once": true, "at least once": false} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			m, live := simulated(t, feedsim.Spec{Blobs: 30, BlockEvents: 5, Shards: 2})
			complete := arrivals.New()
			for range 2 {
				must(t, live.Append(ctx, 200, func(e feedsim.Event) { complete.Expect(e.ID) }), live.Next(ctx))
			}
			c := broker(t)
			for crash := range 3 {
				o, r := over(t, c, m)
				o.Kafka.Transactional, o.Pace.TxnBytes, o.Pace.BundleBytes = transactional, 30_000, 0
				o.Pace.CommitInterval = time.Millisecond
				hard, kill := context.WithCancel(ctx)
				o.Observer = Observers{&crashing{recorder: r, left: 2 + crash, kill: kill}}
				if err := New(o).Run(hard, hard); err != nil {
					t.Errorf("crash %d: %v", crash, err)
				}
				if hard.Err() == nil {
					t.Errorf("crash %d: it did not come to it", crash)
				}
				kill()
			}
			o, _ := over(t, c, m)
			o.Kafka.Transactional = transactional
			must(t, runOnce(t, o))
			first := &firsts{seen: map[string]bool{}, last: map[string]string{}}
			notes := []verify.Validator{complete, first}
			if transactional {
				notes = append(notes, promises()...)
			}
			data, _ := consume(t, c, notes...)
			if data < 400 || transactional && data != 400 || complete.Left() > 0 || first.wrong > 0 {
				t.Errorf("%d records, %d events missing, %d out of order", data, complete.Left(), first.wrong)
			}
		})
	}
}

// crashing ends an instance hard after some commits.
type crashing struct {
	*recorder
	left int
	kill func()
}

func (c *crashing) Committed(commit Commit) {
	c.recorder.Committed(commit)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left--; c.left == 0 {
		c.kill()
	}
}

// firsts checks the order of each blob's events by their sequencers, without those that came before.
type firsts struct {
	seen  map[string]bool
	last  map[string]string
	wrong int
}

func (f *firsts) Note(r verify.Record) {
	id := string(r.Header("ce_id"))
	if r.Key == nil || f.seen[id] {
		return
	}
	f.seen[id] = true
	sequence := strings.ToLower(string(r.Header("sequence")))
	if sequence <= f.last[string(r.Key)] {
		f.wrong++
	}
	f.last[string(r.Key)] = sequence
}

func (f *firsts) Failures() []verify.Failure { return nil }

// Without transactions, what a broker refuses stops everything behind it: events are delivered for the first time in
// their order.
func TestRefusedBatchKeepsOrder(t *testing.T) {
	t.Parallel()
	feed := writeFeed(t, feedsim.Spec{Segments: 3, EventsPerSegment: 200, BlockEvents: 10, Blobs: 6})
	step := int32(1)
	if testing.Short() {
		step = 3
	}
	for at := int32(3); at < 12; at += step {
		c, small := broker(t), "4096"
		createTopic(t, c, topic, partitions, map[string]*string{"max.message.bytes": &small})
		var asked atomic.Int32
		c.ControlKey(int16(kmsg.Produce), func(req kmsg.Request) (kmsg.Response, error, bool) {
			c.KeepControl()
			if asked.Add(1) != at {
				return nil, nil, false
			}
			return answer(req, kerr.PolicyViolation.Code), nil, true
		})
		o, _ := options(t, c, feed)
		o.Kafka.Transactional = false
		o.Kafka.Client = append(o.Kafka.Client, kgo.ProducerLinger(0))
		must(t, runOnce(t, o))
		firstDeliveries(t, c)
	}
}

// A crash in catch-up without transactions: what is repeated is not below a marker for the first time, and markers do
// not fall.
func TestCrashInCatchUpWithoutTransactions(t *testing.T) {
	t.Parallel()
	feed := writeFeed(t, feedsim.Spec{Segments: 12, EventsPerSegment: 40, BlockEvents: 5})
	c, small := broker(t), "4096"
	createTopic(t, c, topic, partitions, map[string]*string{"max.message.bytes": &small})
	for produced := int32(3); produced < 20; produced++ {
		o, _ := options(t, c, feed)
		o.Kafka.Transactional = false // one bundle, of many batches
		ctx, crash := context.WithCancel(t.Context())
		var asked atomic.Int32
		c.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
			if asked.Add(1) < produced {
				c.KeepControl()
			} else {
				crash()
			}
			return nil, nil, false
		})
		must(t, New(o).Run(ctx, ctx))
		crash()
	}
	o, _ := options(t, c, feed)
	o.Kafka.Transactional = false
	must(t, runOnce(t, o))
	firstDeliveries(t, c)
	if tail(t, c).fell {
		t.Error("a marker is below one before it")
	}
}

// firstDeliveries checks the events of a topic as they come for the first time: in order for each key, none below a
// marker.
func firstDeliveries(t *testing.T, c *kfake.Cluster) {
	t.Helper()
	seen, resolved, last := map[string]bool{}, map[int32]string{}, map[string]string{}
	for _, r := range readAll(t, c, topic) {
		if r.Key == nil {
			resolved[r.Partition] = max(resolved[r.Partition], header(r, "resolved"))
			continue
		}
		if seen[string(r.Value)] {
			continue
		}
		seen[string(r.Value)] = true
		updated := header(r, "updated")
		if updated <= last[string(r.Key)] || updated <= resolved[r.Partition] {
			t.Errorf("partition %d, offset %d: %s comes behind %s of its key, and marker %s", r.Partition, r.Offset,
				updated, last[string(r.Key)], resolved[r.Partition])
		}
		last[string(r.Key)] = updated
	}
	if len(seen) == 0 {
		t.Error("there are no events")
	}
}
