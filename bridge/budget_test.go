package bridge

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"blobfeed/bridge/pipeline"
	"blobfeed/internal/testing/feedsim"
	"blobfeed/source"
)

// largest notes the largest transaction, and stops the run after some.
type largest struct {
	*recorder
	mu    sync.Mutex
	bytes int
	left  int
	stop  context.CancelFunc
}

func (l *largest) Committed(c Commit) {
	l.mu.Lock()
	l.bytes = max(l.bytes, c.Bytes)
	l.left--
	if l.left == 0 {
		l.stop()
	}
	l.mu.Unlock()
	l.recorder.Committed(c)
}

// All memory of blocks is given back, also where a run ends in the middle (I9).
func TestBufferBytes(t *testing.T) {
	const events = 2000
	feed := writeFeed(t, feedsim.Spec{Shards: 4, EventsPerSegment: events, BlockEvents: 5})
	for name, test := range map[string]struct{ limit, records, commits int }{
		"to the end": {200_000, 1_000_000, -1},
		"stopped":    {10_000_000, 10, 3}, // with readers that are ahead as far as they may
	} {
		t.Run(name, func(t *testing.T) {
			limit := test.limit
			c := broker(t)
			o, r := options(t, c, feed)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			l := &largest{recorder: r, left: test.commits, stop: cancel}
			o.Observer, o.Pace.BufferBytes, o.Pace.BundleBytes, o.Pace.TxnRecords = Observers{l}, limit, 0, test.records
			b := New(o)
			if err := b.Run(ctx, t.Context()); err != nil {
				t.Fatal(err)
			}
			if l.bytes == 0 {
				t.Error("nothing was delivered")
			}
			if held, _, _ := b.instance.pipe.Use(); held {
				t.Error("some of the memory was not given back")
			}
			if data, _ := consume(t, c, promises()...); test.commits < 0 && data != events {
				t.Errorf("%d records", data)
			}
		})
	}
}

// Events that filters leave out take memory, too, until their block is passed: none of them waits for the
// commit, which is an hour away, and what waits is committed when it takes too much (I9).
func TestFilteredEventsAreBounded(t *testing.T) {
	const events = 10_000
	feed := writeFeed(t, feedsim.Spec{Shards: 2, EventsPerSegment: events, BlockEvents: 20})
	for name, containers := range map[string][]string{"all": {"nothing"}, "most": {"$web"}} {
		t.Run(name, func(t *testing.T) {
			o, r := options(t, broker(t), feed)
			o.Feed.Filter.Containers = containers
			o.Pace.CommitInterval, o.Pace.TxnRecords = time.Hour, events
			o.Pace.BundleBytes, o.Pace.BufferBytes = 0, 1<<20
			b := New(o)
			must(t, b.Run(t.Context(), t.Context()))
			if _, made, _ := b.instance.pipe.Use(); r.Read != events || made > 80 {
				t.Errorf("%d events in %d batches", r.Read, made)
			}
		})
	}
}

// Buffers are kept while there is work, and given back when there was none for a poll interval.
func TestIdleGivesBuffersBack(t *testing.T) {
	opts := &Options{Now: time.Now, Pace: Pace{PollInterval: time.Millisecond}}
	h := &tenure{opts: opts, instance: &instance{pipe: pipeline.New(pipeline.Settings{})}, work: t.Context()}
	changed := make(chan struct{})
	h.instance.pipe.Reuse(&pipeline.Block{})
	h.wait(changed)
	if _, _, free := h.instance.pipe.Use(); free != 0 {
		t.Errorf("idle: %d buffers", free)
	}
	opts.Pace.PollInterval = time.Hour
	h.instance.pipe.Reuse(&pipeline.Block{})
	close(changed)
	h.wait(changed)
	if _, _, free := h.instance.pipe.Use(); free != 1 {
		t.Errorf("between two segments: %d buffers", free)
	}
}

// The batches of a transaction that is over are in the pool, or nowhere: the array that they were in is reused.
func TestTransactionLetsBatchesGo(t *testing.T) {
	x := txn{sent: []*pipeline.Sent{{}, {}, {}}}
	x.reset(source.Segment{})
	for i, s := range x.sent[:3] {
		if s != nil {
			t.Errorf("batch %d is kept", i)
		}
	}
}

// A transaction may be larger than the memory of blocks: what the brokers have acknowledged takes none (I9).
func TestTransactionLargerThanMemory(t *testing.T) {
	for _, transactional := range []bool{true, false} {
		t.Run(fmt.Sprint("transactional ", transactional), func(t *testing.T) { largeTransaction(t, transactional) })
	}
}

func largeTransaction(t *testing.T, transactional bool) {
	const events, memory = 4_000, 1 << 20
	o, r := options(t, broker(t), writeFeed(t, feedsim.Spec{Shards: 1, EventsPerSegment: events, BlockEvents: 20}))
	o.Kafka.Transactional = transactional
	o.Pace.CommitInterval, o.Pace.TxnRecords, o.Pace.TxnBytes = time.Hour, 2*events, 1<<30
	o.Pace.BundleBytes, o.Pace.BufferBytes = 0, memory
	must(t, New(o).Run(t.Context(), t.Context()))
	if r.largest.Read != events || r.largest.Bytes < 4*memory {
		t.Errorf("the largest transaction has %d events of %d, and %d bytes", r.largest.Read, events, r.largest.Bytes)
	}
}

// opened notes how long each transaction with events was open, its end included.
type opened struct {
	*recorder
	took []time.Duration
}

func (o *opened) Committed(c Commit) {
	o.recorder.Committed(c)
	if o.mu.Lock(); c.Read > 0 {
		o.took = append(o.took, c.Took)
	}
	o.mu.Unlock()
}

// Where the brokers take long to end a transaction, it holds more, so that most of the time is for records.
func TestSlowCommitsHoldMore(t *testing.T) {
	t.Parallel()
	const events, end = 10_000, 100 * time.Millisecond
	c := broker(t)
	c.ControlKey(int16(kmsg.EndTxn), func(kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		c.SleepControl(func() { time.Sleep(end) }) // what the brokers take
		return nil, nil, false
	})
	o, r := options(t, c, writeFeed(t, feedsim.Spec{Shards: 1, EventsPerSegment: events, BlockEvents: 20}))
	all := &opened{recorder: r}
	o.Observer = Observers{all}
	o.Pace.CommitInterval, o.Pace.BundleBytes, o.Pace.TxnRecords, o.Pace.TxnBytes = time.Millisecond, 0, events, 1<<30
	must(t, New(o).Run(t.Context(), t.Context()))
	// The first two make it known, the last one ends with the segment. However slow the machine is, one between them
	// is open for as long as its end takes; on a fast one, none may be left.
	t.Logf("transactions of %s", all.took)
	if r.Read != events || len(all.took) < 3 {
		t.Errorf("%d events in %d transactions", r.Read, len(all.took))
	}
	for i, took := range all.took {
		if i >= 2 && i < len(all.took)-1 && took < 2*end {
			t.Errorf("transaction %d was open for %s, and its end takes %s of that", i, took, end)
		}
	}
	w := &writer{t: &tenure{opts: &o}, ends: [2]time.Duration{time.Hour, time.Second}}
	if got := w.interval(time.Millisecond); got != time.Second {
		t.Errorf("%s behind one slow end", got)
	}
	if got := w.leastOpen(); got != 3*time.Second {
		t.Errorf("a transaction with its number of records stays open for %s", got)
	}
	w.ends[1] = time.Hour
	if got := w.interval(time.Millisecond); got >= o.Kafka.TxnTimeout {
		t.Errorf("%s, and the brokers abort after %s", got, o.Kafka.TxnTimeout)
	}
}
