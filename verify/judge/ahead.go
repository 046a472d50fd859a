package judge

import (
	"context"
	"iter"

	"golang.org/x/sync/errgroup"

	"blobfeed/source"
)

const (
	segmentsAhead = 8       // that are opened at the same time, and requests for each
	smallSegment  = 4 << 20 // bytes up to which a segment is read ahead (I9); more take longer than their requests
)

// opened is a segment whose chunks are listed, and read if they are small.
type opened struct {
	manifest source.Manifest
	shards   []*source.ShardReader // as in the manifest
	err      error
	done     chan struct{} // closed when the rest is set
}

// readAhead returns the segments of the feed behind a given one, in order, and opens those behind them meanwhile: a
// small segment would otherwise cost the round trips of its manifest, listings and chunks, one after the other.
func readAhead(
	ctx context.Context, feed *source.Feed, after source.Segment,
) iter.Seq2[*opened, error] {
	return func(yield func(*opened, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		ahead := make(chan *opened, segmentsAhead-2) // one more waits to be sent, and one is in use
		go func() {
			defer close(ahead)
			for seg, err := range feed.Segments(ctx, after) {
				o := &opened{err: err, done: make(chan struct{})}
				go func() {
					defer close(o.done)
					if o.err == nil {
						o.err = o.open(ctx, feed, seg)
					}
				}()
				select {
				case ahead <- o:
				case <-ctx.Done():
					return
				}
			}
		}()
		for o := range ahead {
			<-o.done
			if !yield(o, o.err) || o.err != nil {
				return
			}
		}
		if ctx.Err() != nil {
			yield(nil, ctx.Err())
		}
	}
}

func (o *opened) open(ctx context.Context, feed *source.Feed, seg source.Segment) (err error) {
	if o.manifest, err = feed.Manifest(ctx, seg); err != nil { // I7: the status first
		return err
	}
	var polls, reads errgroup.Group
	polls.SetLimit(segmentsAhead)
	for _, shard := range o.manifest.Shards {
		r := feed.Shard(o.manifest, shard, source.ShardPosition{})
		o.shards = append(o.shards, r)
		polls.Go(func() error { return r.Poll(ctx, o.manifest.Finalized) })
	}
	if err := polls.Wait(); err != nil {
		return err
	}
	size := int64(0)
	for _, r := range o.shards {
		size += r.Ahead()
	}
	if size > smallSegment {
		return nil
	}
	reads.SetLimit(segmentsAhead)
	for _, r := range o.shards {
		reads.Go(func() error { r.Prefetch(ctx); return nil })
	}
	return reads.Wait()
}
