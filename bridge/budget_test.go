package bridge

import (
	"context"
	"sync"
	"testing"

	"blobfeed/integration/feedsim"
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

// What all leases hold stays within the bound, though the settings would let each hold more, and all of it is given back,
// also where a run ends in the middle (I9).
func TestBufferBytes(t *testing.T) {
	const limit, events = 60_000, 2000
	feed := t.TempDir()
	if err := feedsim.Write(t.Context(), feedsim.Dir(feed), feedsim.Spec{Shards: 4, EventsPerSegment: events, BlockEvents: 5}, nil); err != nil {
		t.Fatal(err)
	}
	for name, commits := range map[string]int{"to the end": -1, "stopped": 3} {
		t.Run(name, func(t *testing.T) {
			c := broker(t)
			o, r := options(t, c, feed)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			l := &largest{recorder: r, left: commits, stop: cancel}
			o.Observer, o.BufferBytes, o.BundleBytes, o.TxnRecords = l, limit, 0, 1_000_000
			b := New(o)
			if err := b.Run(ctx, t.Context()); err != nil {
				t.Fatal(err)
			}
			if l.bytes == 0 || l.bytes > limit {
				t.Errorf("a transaction of %d bytes", l.bytes)
			}
			if !b.memory.free.TryAcquire(limit) {
				t.Error("some of the memory was not given back")
			}
			if data, _ := consume(t, c, promises()...); commits < 0 && data != events {
				t.Errorf("%d records", data)
			}
		})
	}
}
