package judge

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"blobfeed/bridge"
	"blobfeed/envelope"
	"blobfeed/internal/history"
	"blobfeed/internal/plain"
	"blobfeed/internal/status"
	"blobfeed/offsets"
	"blobfeed/resolved"
	"blobfeed/source"
	"blobfeed/verify"
)

// feedScan is one scan of the feed, for all judged topics.
type feedScan struct {
	v      *verification
	filter envelope.Filter
	dead   *letters
	sought sought // what seeks may have skipped

	of     map[string]*comparison // by topic
	only   *comparison            // of all events; nil: a template gives each event its topic
	stray  map[string]int64       // events for topics that the state does not know
	extent extent
	over   []finished
	read   int64 // events

	buf []byte // of rec
	rec envelope.Record

	inquiry *inquiry // of a second scan: which expected records are looked up
}

// block compares the events of a block.
func (p *feedScan) block(m source.Manifest, shard int, b *source.Batch) error {
	covered := p.v.state == nil || status.Covers(p.v.state.State, m.Segment, shard, b.Next)
	pos := source.Position{Segment: m.Segment, Shard: shard, Chunk: b.Chunk, Offset: b.Offset}
	if p.v.Reads != nil {
		p.v.Reads.Events.Add(int64(len(b.Events)))
	}
	for i := range b.Events {
		pos.Index = i
		p.read++
		if err := p.event(pos, &b.Events[i], covered); err != nil {
			return &bridge.EventError{Blob: b.Blob, Offset: b.Offset, Index: i, Err: err}
		}
	}
	return nil
}

// event compares an event.
func (p *feedScan) event(pos source.Position, ev *source.Event, covered bool) error {
	match, err := p.filter.Match(ev)
	var c *comparison
	emit := false
	if err == nil && match {
		c, err = p.at(ev, covered)
	}
	if err == nil && c != nil {
		p.buf, emit, err = c.encoder.Append(p.buf[:0], &p.rec, ev, pos)
	}
	dead := p.dead.event(pos, ev)
	if err != nil && dead {
		return nil
	}
	if err == nil && emit && p.v.writer != nil {
		err = p.v.writer.fits(recordOf(&p.rec, p.v.avro))
	}
	switch {
	case !emit || err != nil:
	case p.inquiry != nil:
		p.inquiry.event(c, pos, &p.rec)
	default:
		c.event(pos.Segment, &p.rec, covered && !dead)
	}
	return err
}

// at returns the comparison for the topic of an event, or nil if that topic is not judged.
func (p *feedScan) at(ev *source.Event, covered bool) (*comparison, error) {
	if p.only != nil || !p.v.Records.Events.Emits(envelope.Classify(ev)) {
		return p.only, nil // the encoder leaves out events that are not emitted
	}
	topic, err := p.v.Topics.Names.Of(ev)
	if err != nil {
		return nil, err
	}
	c := p.of[topic]
	if c == nil && covered && p.v.Topic == "" {
		p.stray[topic]++
	}
	return c, nil
}

// finish adds a finished segment.
func (p *feedScan) finish(m source.Manifest) {
	f := finished{segment: m.Segment, end: m.Begin.Add(m.Interval - segmentSlack)}
	f.says = resolved.After(m, p.v.Records.ResolvedSlack, envelope.Timestamp{})
	p.over = append(p.over, f)
	for _, c := range p.of {
		c.ends = append(c.ends, c.records)
	}
}

// missing returns a report for each topic of stray that the state does not know. Stray counts things, such as "event",
// and has begins the text of the problem: "the feed has".
func (s *progressState) missing(check, promise, has, thing string, stray map[string]int64) (reports []*Report) {
	for _, topic := range slices.Sorted(maps.Keys(stray)) {
		problem := fmt.Sprintf("%s %s for this topic, and %s does not know the topic", has,
			plain.Count(stray[topic], thing), s.topic)
		reports = append(reports, &Report{Topic: topic, Checks: []checkReport{{
			Name: check, Status: Broken, Promise: promise, Failures: []verify.Failure{{Problem: problem}},
		}}})
	}
	return reports
}

// walk reads the feed, and adds to the comparisons what the settings make of each event.
func (v *verification) walk(ctx context.Context, p *feedScan, judged []*judgedTopic) (err error) {
	p.filter, p.of, p.stray = v.Feed.Filter, map[string]*comparison{}, map[string]int64{}
	p.filter.To = v.Feed.End
	if p.filter.From, err = v.start(); err != nil {
		return err
	}
	if p.sought, err = p.seeks(ctx, judged); err != nil {
		return err
	}
	for _, s := range judged {
		c, err := p.compare(ctx, s)
		if err != nil {
			return err
		}
		p.of[s.name] = c
		if _, one := v.Topics.Names.Constant(); one { // under any name: the topic may be a copy
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
	for l, err := range readAhead(ctx, v.Feed.Source, after) {
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
func (p *feedScan) compare(ctx context.Context, s *judgedTopic) (c *comparison, err error) {
	c = &comparison{
		Replay: &verify.Replay{Repeats: !p.v.Kafka.Transactional, Latest: s.compacted},
		pass:   p, encoder: s.encoder, counts: s.growth.counts(), upTo: p.v.Until,
	}
	c.EncodingTime, c.Moves = p.v.Record.Envelope == envelope.Enriched, s.growth.grew()
	if c.cutAt, err = s.cuts(ctx); err != nil {
		return nil, err
	}
	if c.fedFrom, err = s.fedFrom(); err != nil {
		return nil, err
	}
	if p.v.since != nil {
		c.upTo = envelope.Timestamp{} // all of the segments that this round reads
	}
	if p.v.state == nil && c.upTo == (envelope.Timestamp{}) {
		// Without a state the topic's own markers say what is required, and a first pass finds them.
		c.upTo, err = s.resolved(ctx)
	}
	return c, err
}

// start returns the time before which the bridge leaves events out.
func (v *verification) start() (envelope.Timestamp, error) {
	s := v.state
	switch {
	case s != nil && s.Frontier.Epoch > 0: // Start is the target of a seek, and the topic may have earlier events
		return envelope.Timestamp{}, nil
	case s != nil && s.Frontier.Start != "":
		return envelope.ParseTimestamp(s.Frontier.Start)
	case s != nil, v.Records.Frozen[offsets.FrozenStart] == "earliest":
		return envelope.Timestamp{}, nil
	case v.Records.Frozen[offsets.FrozenStart] == "latest":
		return envelope.Timestamp{}, fmt.Errorf("comparing the feed: BRIDGE_START=latest, and %s.offsets has no state "+
			"with the time of the start: set BRIDGE_START to that time", v.Name)
	}
	return history.ParseTime(v.Records.Frozen[offsets.FrozenStart])
}

// shard compares the events of a shard, from the first one on.
func (p *feedScan) shard(ctx context.Context, m source.Manifest, shard int, r *source.ShardReader) error {
	lost := func(d *source.DamageError, loss source.Loss) error {
		if d.Kind == source.Gone {
			p.extent.holes = append(p.extent.holes, hole{m.Segment, shard, loss.Chunk, r.Position().Chunk})
			return nil
		}
		at := source.Position{Segment: m.Segment, Shard: shard, Chunk: loss.Chunk, Offset: loss.From}
		return p.dead.covers(ctx, p.v.Feed.Source, at, d, loss)
	}
	return blocks(ctx, r, lost, func(b *source.Batch) error { return p.block(m, shard, b) })
}

// blocks shows the blocks of a shard. Where a chunk is damaged, the reader continues behind the damage unless lost
// returns an error, and the block has the events before it.
func blocks(
	ctx context.Context, r *source.ShardReader, lost func(*source.DamageError, source.Loss) error,
	show func(*source.Batch) error,
) error {
	var b source.Batch
	for {
		err := r.Next(ctx, &b)
		if errors.Is(err, io.EOF) {
			return nil
		}
		var d *source.DamageError
		if errors.As(err, &d) {
			loss, known, failed := r.Loss(ctx, d)
			if err = failed; failed == nil && !known {
				err = d
			}
			if err == nil {
				r.Skip(loss)
				err = lost(d, loss)
			}
			b.Next = r.Position()
		}
		if err == nil {
			err = show(&b)
		}
		if err != nil {
			return err
		}
	}
}

// segmentSlack is how far outside its segment an event may be.
const segmentSlack = 15 * time.Minute

// finished is a segment that is finalized, and so has a marker after it.
type finished struct {
	segment source.Segment
	end     time.Time          // less segmentSlack
	says    envelope.Timestamp // time of the marker, by the segment's own times
}

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

// gone reports whether the feed has the event of a record no more.
func (e *extent) gone(r *verify.Record) bool {
	pos, err := source.ParsePosition(string(r.Header("position")))
	return err == nil && (pos.Segment.Compare(e.oldest) < 0 || slices.ContainsFunc(e.holes, func(h hole) bool {
		return h.segment == pos.Segment && h.shard == pos.Shard && h.from <= pos.Chunk && pos.Chunk < h.to
	}))
}
