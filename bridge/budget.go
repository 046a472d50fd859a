package bridge

import (
	"context"
	"math"
	"sync/atomic"

	"golang.org/x/sync/semaphore"
)

// budget bounds the bytes of the records that the leases of an instance hold together: encoded, and not committed (I9).
// A reader waits for it before it hands on a batch. That ends: what is held is in a transaction, or on its way into one,
// and every transaction is committed within the commit interval, or dropped.
type budget struct {
	limit   int64
	free    *semaphore.Weighted
	passing atomic.Int64 // leases that read and write
}

// newBudget returns a bound of so many bytes; 0 is none.
func newBudget(limit int) *budget {
	if limit == 0 {
		limit = math.MaxInt64
	}
	return &budget{limit: int64(limit), free: semaphore.NewWeighted(int64(limit))}
}

// acquire waits for the bytes of b. One that is larger than all there is waits until nothing else is held.
func (m *budget) acquire(ctx context.Context, b *batch) error {
	size := min(int64(b.bytes), m.limit)
	if err := m.free.Acquire(ctx, size); err != nil {
		return err
	}
	b.held = size
	return nil
}

func (m *budget) release(size int64) { m.free.Release(size) }

// batchBytes is what the records of one block may take: they are encoded before they wait for memory. Real ones take
// 300 KB.
func (w *worker) batchBytes() int {
	const most = 64 << 20
	if w.BufferBytes == 0 {
		return most
	}
	return min(w.BufferBytes, most)
}

// transaction is how large one may become, so that those of all leases fit, and as much is on its way into them.
func (m *budget) transaction(most int) int {
	return int(min(int64(most), max(1, m.limit/2/max(1, m.passing.Load()))))
}
