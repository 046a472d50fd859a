package judge

import (
	"context"
	"slices"

	"blobfeed/source"
	"blobfeed/verify"
)

// hole is where chunks of a shard are missing before others: retention deletes a segment blob by blob.
type hole struct {
	segment  source.Segment
	shard    int
	from, to int // chunks, to excluded
}

// extent is what the feed still has.
type extent struct {
	oldest source.Segment
	holes  []hole
}

// skip continues after a hole.
func (e *extent) skip(ctx context.Context, r *source.ShardReader, at source.Position, d *source.DamageError) error {
	loss, ok, err := r.Loss(ctx, d)
	if err != nil {
		return err
	}
	if !ok {
		return d
	}
	r.Skip(loss)
	e.holes = append(e.holes, hole{at.Segment, at.Shard, loss.Chunk, r.Position().Chunk})
	return nil
}

// gone reports whether the feed has the event of a record no more.
func (e *extent) gone(r *verify.Record) bool {
	pos, err := source.ParsePosition(string(r.Header("position")))
	return err == nil && (pos.Segment.Compare(e.oldest) < 0 || slices.ContainsFunc(e.holes, func(h hole) bool {
		return h.segment == pos.Segment && h.shard == pos.Shard && h.from <= pos.Chunk && pos.Chunk < h.to
	}))
}
