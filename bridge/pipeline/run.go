package pipeline

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"blobfeed/internal/crash"
	"blobfeed/source"
)

// Run is a pass at work.
type Run struct {
	// Blocks are those of all shards, the blocks of a shard in order. It is closed when every shard has ended.
	Blocks <-chan *Block

	p      *Pipeline
	ctx    context.Context
	cancel context.CancelCauseFunc
	stays  atomic.Bool
}

// Start reads every shard to the end of a listing that is made now. Failed is called with the error of each shard that
// stays where it is.
func (p *Pipeline) Start(
	ctx context.Context, d *Pass, shards []int, readers map[int]*source.ShardReader, failed func(error),
) *Run {
	p.memory.passing.Add(1)
	p.memory.readers.Add(int64(len(shards)))
	out := make(chan *Block, prefetch*len(shards))
	r := &Run{Blocks: out, p: p}
	r.ctx, r.cancel = context.WithCancelCause(ctx)
	var reading sync.WaitGroup
	for _, n := range shards {
		s := &shard{p: p, pass: d, number: n, reader: readers[n], out: out}
		reading.Go(crash.Guard(ctx, "shard", func() {
			defer p.memory.readers.Add(-1)
			err := s.run(r.ctx)
			var stay *StayError
			switch {
			case errors.As(err, &stay):
				failed(err)
				r.stays.Store(true)
			case err != nil:
				r.cancel(err) // also where another shard retries without end
			}
		}))
	}
	crash.Go(ctx, "shard", func() {
		reading.Wait()
		close(out)
	})
	return r
}

// Err returns the error of the first shard that could not be read to its end. It is final when Blocks is closed.
func (r *Run) Err() error { return context.Cause(r.ctx) }

// Stays reports whether a shard of an open segment stays where it is. The others have ended without it, so that they
// are listed again; the shard reports its failure when the segment is finalized, which may be what it waits for.
func (r *Run) Stays() bool { return r.stays.Load() }

// Close ends the run, and returns when no goroutine of it is left: the readers must be gone before the lease is.
func (r *Run) Close() {
	r.cancel(nil)
	for b := range r.Blocks {
		r.p.memory.release(b)
	}
	r.p.memory.passing.Add(-1)
}
