package judge

import (
	"cmp"
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
		next, stop := iter.Pull2(feed.Segments(ctx, after))
		defer stop()
		var ahead []*opened
		for {
			for len(ahead) < segmentsAhead {
				seg, err, more := next()
				if !more {
					break
				}
				o := &opened{err: err, done: make(chan struct{})}
				ahead = append(ahead, o)
				go func() {
					defer close(o.done)
					if o.err == nil {
						o.err = o.open(ctx, feed, seg)
					}
				}()
			}
			if len(ahead) == 0 {
				return
			}
			o := ahead[0]
			ahead = ahead[1:]
			<-o.done
			if err := cmp.Or(o.err, ctx.Err()); !yield(o, err) || err != nil {
				return
			}
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
