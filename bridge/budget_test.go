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
	const events = 2000
	feed := t.TempDir()
	if err := feedsim.Write(t.Context(), feedsim.Dir(feed), feedsim.Spec{Shards: 4, EventsPerSegment: events, BlockEvents: 5}, nil); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct{ limit, records, commits int }{
		"to the end": {60_000, 1_000_000, -1},
		"stopped":    {10_000_000, 10, 3}, // with readers that are ahead as far as they may
	} {
		t.Run(name, func(t *testing.T) {
			limit := test.limit
			c := broker(t)
			o, r := options(t, c, feed)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			l := &largest{recorder: r, left: test.commits, stop: cancel}
			o.Observer, o.BufferBytes, o.BundleBytes, o.TxnRecords = l, limit, 0, test.records
			b := New(o)
			if err := b.Run(ctx, t.Context()); err != nil {
				t.Fatal(err)
			}
			if l.bytes == 0 || l.bytes > limit {
				t.Errorf("a transaction of %d bytes", l.bytes)
			}
			if !b.memory.free.TryAcquire(int64(limit)) {
				t.Error("some of the memory was not given back")
			}
			if data, _ := consume(t, c, promises()...); test.commits < 0 && data != events {
				t.Errorf("%d records", data)
			}
		})
	}
}
