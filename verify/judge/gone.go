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

// skip continues after a hole.
func (p *feedPass) skip(ctx context.Context, r *source.ShardReader, at source.Position, d *source.DamageError) error {
	loss, ok, err := r.Loss(ctx, d)
	if err != nil {
		return err
	}
	if !ok {
		return d
	}
	r.Skip(loss)
	p.holes = append(p.holes, hole{at.Segment, at.Shard, loss.Chunk, r.Position().Chunk})
	return nil
}

// Note implements verify.Validator. Records whose events the feed has no more can't be compared.
func (c *comparison) Note(r verify.Record) {
	if r.Key != nil && c.pass.gone(&r) {
		c.older++
		return
	}
	if r.Key != nil {
		c.noted++
	}
	bad := c.Bad()
	c.Replay.Note(r)
	if c.Bad() > bad && len(c.odd) < maxOdd {
		c.odd = append(c.odd, r)
	}
}

func (p *feedPass) gone(r *verify.Record) bool {
	pos, err := source.ParsePosition(string(r.Header("position")))
	return err == nil && (pos.Segment.Compare(p.oldest) < 0 || slices.ContainsFunc(p.holes, func(h hole) bool {
		return h.segment == pos.Segment && h.shard == pos.Shard && h.from <= pos.Chunk && pos.Chunk < h.to
	}))
}
