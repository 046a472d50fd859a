package bridge

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"blobfeed/offsets"
)

// What is ahead of a lease is that of all its shards, also of one that has listed its chunks and read nothing yet.
func TestAheadOfAllShards(t *testing.T) {
	t.Parallel()
	m := newMemory()
	m.segment("2026/01/01/0000", "Finalized", 60, map[int][]happened{
		0: {{"1", "2026-01-01T00:10:00Z", "a"}}, 1: {{"2", "2026-01-01T00:10:00Z", "b"}},
	})
	var held atomic.Bool
	held.Store(true)
	m.onRead = func(name string) error {
		if held.Load() && strings.HasPrefix(name, "log/01") {
			return errors.New("held")
		}
		return nil
	}
	o, _ := over(t, broker(t), m)
	o.Kafka.Leases, o.Pace.BundleBytes = 1, 0
	live(t, o)
	s := awaitState(t, o, "the other shard is delivered", func(s *offsets.State) bool {
		return s.Cursors[0] != nil && s.Cursors[0].Counts.Read == 1
	})
	if got, want := s.Cursors[0].Ahead, int64(len(m.blobs["log/01"+openChunk])); got != want {
		t.Errorf("%d bytes are ahead, want %d", got, want)
	}
	held.Store(false)
	s = awaitState(t, o, "all is delivered", func(s *offsets.State) bool {
		return s.Frontier != nil && s.Cursors[0] != nil && s.Cursors[0].Finished(s.Frontier.Completed)
	})
	if s.Cursors[0].Ahead != 0 {
		t.Errorf("%d bytes are ahead of a segment that is done", s.Cursors[0].Ahead)
	}
}
