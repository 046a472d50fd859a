package judge

import (
	"context"
	"iter"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"blobfeed/source"
)

const (
	segmentsAhead = 8        // that are listed or read at the same time
	smallSegment  = 4 << 20  // bytes up to which a segment is read ahead; more take longer than their requests
	bytesAhead    = 16 << 20 // that are read ahead (I9)
)

// opened is a segment whose chunks are listed, and read if they are small.
type opened struct {
	manifest source.Manifest
	shards   []*source.ShardReader // as in the manifest
	err      error
	size     int64 // that is read ahead

	listing, reading chan struct{} // closed at their ends
}

// readAhead returns the segments of the feed behind a given one, in order, and reads those behind them meanwhile: a
// small segment would otherwise cost the round trips of its manifest, listings and chunks, one after the other.
func readAhead(
	ctx context.Context, feed *source.Feed, after source.Segment,
) iter.Seq2[*opened, error] {
	return func(yield func(*opened, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		memory := semaphore.NewWeighted(bytesAhead)
		for l := range reads(ctx, memory, lists(ctx, feed, after)) {
			select {
			case <-l.reading:
			case <-ctx.Done():
				yield(nil, ctx.Err())
				return
			}
			if !yield(l, l.err) || l.err != nil {
				return
			}
			memory.Release(l.size)
		}
		if ctx.Err() != nil {
			yield(nil, ctx.Err())
		}
	}
}

// lists lists the chunks of several segments at a time.
func lists(ctx context.Context, feed *source.Feed, after source.Segment) <-chan *opened {
	out := make(chan *opened, segmentsAhead/2)
	go func() {
		defer close(out)
		for seg, err := range feed.Segments(ctx, after) {
			l := &opened{err: err, listing: make(chan struct{}), reading: make(chan struct{})}
			if err != nil {
				close(l.listing)
			} else {
				go l.list(ctx, feed, seg)
			}
			select {
			case out <- l:
			case <-ctx.Done():
				return
			}
		}
	}()
	return out
}

// reads reads the small segments of in, in their order: the one that waits for memory is the next to be compared, so
// those that hold it are done before.
func reads(ctx context.Context, memory *semaphore.Weighted, in <-chan *opened) <-chan *opened {
	out := make(chan *opened, segmentsAhead/2)
	go func() {
		defer close(out)
		for l := range in {
			select {
			case <-l.listing:
			case <-ctx.Done():
				return
			}
			if memory.Acquire(ctx, l.size) != nil {
				return
			}
			go l.read(ctx)
			select {
			case out <- l:
			case <-ctx.Done():
				return
			}
		}
	}()
	return out
}

func (l *opened) list(ctx context.Context, feed *source.Feed, seg source.Segment) {
	defer close(l.listing)
	if l.manifest, l.err = feed.Manifest(ctx, seg); l.err != nil { // I7: the status first
		return
	}
	var g errgroup.Group
	g.SetLimit(segmentsAhead)
	for _, shard := range l.manifest.Shards {
		r := feed.Shard(l.manifest, shard, source.ShardPosition{})
		l.shards = append(l.shards, r)
		g.Go(func() error { return r.Poll(ctx, l.manifest.Finalized) })
	}
	if l.err = g.Wait(); l.err != nil {
		return
	}
	for _, r := range l.shards {
		l.size += r.Ahead()
	}
	if l.size > smallSegment {
		l.size = 0
	}
}

func (l *opened) read(ctx context.Context) {
	defer close(l.reading)
	if l.size == 0 {
		return
	}
	var g errgroup.Group
	g.SetLimit(segmentsAhead)
	for _, r := range l.shards {
		g.Go(func() error {
			r.Prefetch(ctx)
			return nil
		})
	}
	_ = g.Wait() // Prefetch has no error
}
