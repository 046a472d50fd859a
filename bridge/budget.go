package bridge

import (
	"context"
	"math"
	"sync/atomic"

	"golang.org/x/sync/semaphore"
)

// budget bounds the memory of the batches that the leases of an instance hold together: read and encoded, and not
// committed (I9).
// A reader waits for it before it hands on a batch. That ends: what is held is in a transaction, or on its way into one,
// and every transaction is committed within the commit interval, or dropped.
type budget struct {
	limit   int64
	free    *semaphore.Weighted
	passing atomic.Int64 // leases that read and write
}

// newBudget returns a bound in bytes; 0 is none.
func newBudget(limit int) *budget {
	if limit == 0 {
		limit = math.MaxInt64
	}
	return &budget{limit: int64(limit), free: semaphore.NewWeighted(int64(limit))}
}

// acquire waits for the memory of b. One that is larger than the limit waits until nothing else is held.
func (m *budget) acquire(ctx context.Context, b *batch) error {
	size := min(int64(b.footprint()), m.limit)
	if err := m.free.Acquire(ctx, size); err != nil {
		return context.Cause(ctx)
	}
	b.held = size
	return nil
}

func (m *budget) release(size int64) { m.free.Release(size) }

// share is how much a transaction may hold: those of all leases fit, with as much on its way into them.
func (m *budget) share() int64 { return max(1, m.limit/2/max(1, m.passing.Load())) }

// batchBytes is what the records of one block may take: they are encoded before they wait for memory. Real ones take
// 300 KB.
func (w *worker) batchBytes() int {
	const least, most = 4 << 20, 64 << 20
	if w.BufferBytes == 0 {
		return most
	}
	return max(least, min(w.BufferBytes/footprints, most))
}
