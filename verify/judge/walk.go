package judge

import (
	"context"
	"errors"
	"fmt"
	"io"

	"blobfeed/envelope"
	"blobfeed/internal/history"
	"blobfeed/offsets"
	"blobfeed/source"
	"blobfeed/verify"
)

// walk reads the feed, and adds to the comparisons what the settings make of each event.
func (v *verification) walk(ctx context.Context, p *feedScan, subjects []*subject, state *progressState) (err error) {
	p.state, p.filter, p.of, p.stray = state, v.Filter, map[string]*comparison{}, map[string]int64{}
	p.filter.To = v.End
	if p.filter.From, err = v.start(state); err != nil {
		return err
	}
	if p.sought, err = p.seeks(ctx, subjects); err != nil {
		return err
	}
	for _, s := range subjects {
		c, err := p.compare(ctx, s)
		if err != nil {
			return err
		}
		p.of[s.name] = c
		if _, one := v.Topics.Constant(); one { // under any name: the topic may be a copy
			p.only = c
		}
	}
	if p.dead, err = v.letters(ctx); err != nil { // after the state: it has what the cursors passed
		return err
	}
	var after source.Segment
	if v.since != nil {
		after = v.since.completed
	}
	for l, err := range readAhead(ctx, v.Feed, after) {
		if err != nil {
			return err
		}
		if v.since != nil && !v.since.ended && l.manifest.Segment.Compare(v.since.next) > 0 {
			return nil
		}
		if p.extent.oldest == (source.Segment{}) && after == (source.Segment{}) {
			p.extent.oldest = l.manifest.Segment
		}
		for i, r := range l.shards { // a blob is in one shard
			if err := p.shard(ctx, l.manifest, l.manifest.Shards[i], r); err != nil {
				return err
			}
		}
		if l.manifest.Finalized {
			p.finish(l.manifest)
		}
	}
	return nil
}

// compare returns the comparison of a topic.
func (p *feedScan) compare(ctx context.Context, s *subject) (c *comparison, err error) {
	mode := verify.ReplayExact
	switch {
	case s.compacted:
		mode = verify.ReplayLatest
	case !p.v.Transactional:
		mode = verify.ReplayRepeats
	}
	c = &comparison{
		Replay: verify.NewReplay(mode), encoder: s.encoder, avro: p.v.avro, extent: &p.extent, sought: p.sought,
		partition: p.v.Partition, stateful: p.state != nil, upTo: p.v.Until,
	}
	c.counts = s.growth.counts()
	if p.v.Record.Envelope == envelope.Enriched {
		c.Made()
	}
	if s.growth.grew() {
		c.Moves()
	}
	if c.begins, err = s.begins(ctx); err != nil {
		return nil, err
	}
	if c.begun, err = p.v.begun(ctx, s, p.state); err != nil {
		return nil, err
	}
	if p.v.since != nil {
		c.upTo = envelope.Timestamp{} // all of the segments that this round reads
	}
	if p.state != nil {
		c.bound = "the cursors in " + p.state.topic
	} else if c.upTo == (envelope.Timestamp{}) {
		// Without a state the topic's own markers say what is required, and a first pass finds them.
		if c.upTo, err = s.resolved(ctx); err != nil {
			return nil, err
		}
	}
	if c.upTo != (envelope.Timestamp{}) {
		c.bound = "the marker " + c.upTo.String()
	}
	return c, nil
}

// start returns the time before which the bridge leaves events out.
func (v *verification) start(s *progressState) (envelope.Timestamp, error) {
	switch {
	case s != nil && s.Frontier.Epoch > 0: // Start is the target of a seek, and the topic may have earlier events
		return envelope.Timestamp{}, nil
	case s != nil && s.Frontier.Start != "":
		return envelope.ParseTimestamp(s.Frontier.Start)
	case s != nil, v.Frozen[offsets.FrozenStart] == "earliest":
		return envelope.Timestamp{}, nil
	case v.Frozen[offsets.FrozenStart] == "latest":
		return envelope.Timestamp{}, fmt.Errorf("comparing the feed: BRIDGE_START=latest, and %s.offsets has no state "+
			"with the time of the start: set BRIDGE_START to that time", v.Name)
	}
	return history.ParseTime(v.Frozen[offsets.FrozenStart])
}

// shard compares the events of a shard, from the first one on.
func (p *feedScan) shard(ctx context.Context, m source.Manifest, shard int, r *source.ShardReader) error {
	var b source.Batch
	for {
		err := r.Next(ctx, &b)
		if errors.Is(err, io.EOF) {
			return nil
		}
		var d *source.DamageError
		if errors.As(err, &d) { // b has the events before it
			at := source.Position{Segment: m.Segment, Shard: shard}
			if d.Kind == source.Gone {
				err = p.extent.skip(ctx, r, at, d)
			} else {
				err = p.dead.pass(ctx, p.v.Feed, r, at, d)
			}
			b.Next = r.Position()
		}
		if err != nil {
			return err
		}
		if err := p.block(m, shard, &b); err != nil {
			return err
		}
	}
}
