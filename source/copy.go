package source

import (
	"context"
	"errors"
	"fmt"

	"blobfeed/internal/plain"
)

// ErrIncomplete is the error of a copy without a part that every feed has.
var ErrIncomplete = errors.New("the copy is incomplete")

// incomplete returns ErrIncomplete with what is missing.
func incomplete(what string) error {
	return plain.WithRemedy(fmt.Errorf("%w: %s", ErrIncomplete, what),
		"copy the container $blobchangefeed whole: log/ and idx/ first, then meta/")
}

// hasIndex returns an error if the copy has no segment, although one may be read.
func (f *Feed) hasIndex(ctx context.Context, last Segment) error {
	for _, err := range f.Indexed(ctx) {
		return err
	}
	return incomplete(fmt.Sprintf("%s says that segment %s may be read, and %s has no segment", watermarkName, last,
		segmentsRoot))
}

// chunkless judges a complete shard without chunks. The service makes segments only for times with events, so one of
// the shards has a chunk. If none has, chunks are missing (I8): that is certain for a copy. The service itself may have
// deleted them. Whether each shard must have a chunk is not known.
func (r *ShardReader) chunkless(ctx context.Context) error {
	for _, prefix := range r.paths {
		if prefix == r.prefix {
			continue
		}
		chunks, err := r.feed.chunks(ctx, prefix)
		if err != nil {
			return err
		}
		if len(chunks) == 0 {
			continue
		}
		if r.feed.opt.Copy {
			r.lacks = fmt.Sprintf("the manifest names %s, and the copy of the feed has no chunk there: if the "+
				"container has one, copy it, and continue at segment %s again (bridge seek)", r.prefix, r.segment)
		}
		return nil
	}
	r.lacks = fmt.Sprintf("segment %s is finalized, and none of the %d shards that its manifest names has a chunk",
		r.segment, len(r.paths))
	if r.feed.opt.Copy {
		return incomplete(r.lacks)
	}
	return nil
}

// Lacks says what of a complete shard may be missing, as far as the last Poll can tell; "" is nothing.
func (r *ShardReader) Lacks() string { return r.lacks }
