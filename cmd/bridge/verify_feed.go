package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"blobfeed/bridge"
	"blobfeed/envelope"
	"blobfeed/source"
	"blobfeed/verify"
)

// comparison is what the feed says the topic has to hold.
type comparison struct {
	*verify.Replay
	covers func(seg source.Segment, shard int, next source.ShardPosition) bool
	upTo   envelope.Timestamp // only events up to it are required; zero: all that are covered
	bound  string             // the same for readers
	begins map[int32]source.Segment
	dead   *letters
	target bridge.Target // of the last seek

	oldest source.Segment // of the feed
	holes  []hole
	read   int64 // events
	given  int64 // of them those that the settings let through
	before int64 // of them those before the begin of their partition
	sought int64 // of them those before the target of the last seek
	older  int64 // records of segments, or chunks, that the feed no longer holds
}

// forever is after every segment.
var forever = source.SegmentAt(time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC))

// compare reads the feed, and expects of the topic what the settings make of it.
func (v *verification) compare(ctx context.Context, t *topic, s *progressState) (*comparison, error) {
	mode := verify.ReplayExact
	switch {
	case t.compacted:
		mode = verify.ReplayLatest
	case !v.Transactional:
		mode = verify.ReplayRepeats
	}
	c := &comparison{Replay: verify.NewReplay(mode), upTo: v.until}
	if v.grownFrom > 0 {
		c.Moves()
	}
	filter := v.Filter
	filter.To = v.End
	var err error
	if filter.From, err = v.start(s); err != nil {
		return nil, err
	}
	if c.target, err = v.target(ctx, t, s); err != nil {
		return nil, err
	}
	if c.begins, err = v.begins(ctx, t); err != nil {
		return nil, err
	}
	if c.dead, err = v.letters(ctx); err != nil { // after the state: what its cursors passed is there
		return nil, err
	}
	if s != nil {
		c.covers, c.bound = s.covers, fmt.Sprintf("the cursors in %s.offsets", v.Name)
	} else if c.upTo == (envelope.Timestamp{}) {
		// Without a state the topic's own markers say what has to be there, and a first pass finds them.
		if c.upTo, err = v.resolved(ctx, t); err != nil {
			return nil, err
		}
	}
	if c.upTo != (envelope.Timestamp{}) {
		c.bound = "the marker " + c.upTo.String()
	}
	for seg, err := range v.Feed.Segments(ctx, source.Segment{}) {
		if err != nil {
			return nil, err
		}
		if c.oldest == (source.Segment{}) {
			c.oldest = seg
		}
		if err := v.segment(ctx, c, seg, &filter, len(t.to)); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// start returns the time before which the bridge left events out.
func (v *verification) start(s *progressState) (envelope.Timestamp, error) {
	switch {
	case s != nil && s.frontier.Epoch > 0: // Start is where a seek went to, and there may be events from before
		return envelope.Timestamp{}, nil
	case s != nil && s.frontier.Start != "":
		return envelope.ParseTimestamp(s.frontier.Start)
	case s != nil, v.config.Start == "earliest":
		return envelope.Timestamp{}, nil
	case v.config.Start == "latest":
		return envelope.Timestamp{}, fmt.Errorf("BRIDGE_START=latest, and no state in %s.offsets says when that was: the feed can't be compared", v.Name)
	}
	return bridge.ParseTime(v.config.Start)
}

// target returns where the last seek went to, if there was one. Seeks may skip, so what is before it may be in the topic or not.
func (v *verification) target(ctx context.Context, t *topic, s *progressState) (to bridge.Target, err error) {
	if s == nil || s.frontier.Epoch == 0 {
		return to, nil
	}
	text := s.frontier.Start // if nothing else tells
	if seek := s.frontier.Seek; seek != nil {
		text = seek.To
	} else if err := t.scan(ctx, func(verify.Record) bool { return true }); err != nil {
		return to, err
	} else if n := len(t.seeks); n > 0 {
		_, text, _ = strings.Cut(t.seeks[n-1], " ")
	}
	return bridge.ParseTarget(cmp.Or(text, "earliest"))
}

// begins returns, for partitions whose begin is gone, the segment of their first event: up to there events may be gone, too.
func (v *verification) begins(ctx context.Context, t *topic) (map[int32]source.Segment, error) {
	begins, from, to := map[int32]source.Segment{}, map[int32]int64{}, map[int32]int64{}
	for p, at := range t.from {
		if at > 0 {
			begins[p], from[p], to[p] = forever, at, t.to[p]
		}
	}
	var unknown error
	err := t.read(ctx, from, to, func(r verify.Record) (more bool) {
		if r.Key == nil {
			return true
		}
		pos, err := envelope.ParsePosition(string(r.Header("position")))
		if err == nil {
			begins[r.Partition], err = source.ParseSegment(pos.Segment)
		}
		if err != nil {
			unknown = fmt.Errorf("partition %d of %s begins at offset %d, and its first record does not tell its place in the feed: %w", r.Partition, t.name, t.from[r.Partition], err)
		}
		return false
	})
	return begins, errors.Join(err, unknown)
}

// resolved returns the time up to which all partitions are resolved, or zero.
func (v *verification) resolved(ctx context.Context, t *topic) (least envelope.Timestamp, err error) {
	if err := t.scan(ctx, func(verify.Record) bool { return true }); err != nil || len(t.markers) < len(t.to) {
		return least, err
	}
	for _, at := range t.markers {
		if least == (envelope.Timestamp{}) || at.Compare(least) < 0 {
			least = at
		}
	}
	return least, nil
}

// segment expects the events of a segment, shard by shard: a blob is in one.
func (v *verification) segment(ctx context.Context, c *comparison, seg source.Segment, filter *envelope.Filter, partitions int) error {
	m, err := v.Feed.Manifest(ctx, seg)
	if err != nil {
		return err
	}
	var b source.Batch
	for _, shard := range m.Shards {
		r := v.Feed.Shard(m, shard, source.ShardPosition{})
		if err := r.Poll(ctx, m.Finalized); err != nil {
			return err
		}
		for {
			err := r.Next(ctx, &b)
			if errors.Is(err, io.EOF) {
				break
			}
			var d *source.DamageError
			if errors.As(err, &d) { // b has the events before it
				at := envelope.Position{Segment: m.Segment.String(), Shard: fmt.Sprintf("%02d", shard)}
				if d.Kind == source.Gone {
					err = c.skip(ctx, r, at, d)
				} else {
					err = c.dead.pass(ctx, v.Feed, r, at, d)
				}
				b.Next = r.Position()
			}
			if err != nil {
				return err
			}
			if err := v.block(c, m, shard, &b, filter, partitions); err != nil {
				return err
			}
		}
	}
	return nil
}

// block expects what the bridge makes of the events of a block.
func (v *verification) block(c *comparison, m source.Manifest, shard int, b *source.Batch, filter *envelope.Filter, partitions int) error {
	covered := c.covers == nil || c.covers(m.Segment, shard, b.Next)
	pos := envelope.Position{Segment: m.Segment.String(), Shard: fmt.Sprintf("%02d", shard), Chunk: b.Chunk, Offset: b.Offset}
	var buf []byte
	var rec envelope.Record
	for i := range b.Events {
		pos.Index = i
		c.read++
		match, err := filter.Match(&b.Events[i])
		emit := false
		if err == nil && match {
			match, err = v.here(&b.Events[i])
		}
		if err == nil && match {
			buf, emit, err = v.encoder.Append(buf[:0], &rec, &b.Events[i], pos)
		}
		dead := c.dead.event(pos, &b.Events[i])
		if err != nil && dead {
			continue
		}
		if err != nil {
			return &bridge.EventError{Blob: b.Blob, Offset: b.Offset, Index: i, Err: err}
		}
		if !emit {
			continue
		}
		c.given++
		required := covered && !dead && (c.covers != nil || c.upTo != (envelope.Timestamp{})) &&
			(c.upTo == (envelope.Timestamp{}) || rec.Updated.Compare(c.upTo) <= 0)
		if c.target.After(m.Segment, rec.Updated) {
			required = false
			c.sought++
		}
		for _, n := range []int{partitions, v.grownFrom} {
			if n == 0 {
				continue
			}
			if begin, cut := c.begins[v.Partition(rec.Key, n)]; cut && m.Segment.Compare(begin) <= 0 {
				required = false
				c.before++
				break
			}
		}
		expected := verify.Record{Key: rec.Key, Value: rec.Value, Millis: rec.Millis, Headers: make([]verify.Header, len(rec.Headers))}
		for j, h := range rec.Headers {
			expected.Headers[j] = verify.Header(h)
		}
		c.Expect(expected, required)
		if rec.Tombstone {
			expected.Value = nil
			c.Expect(expected, required)
		}
	}
	return nil
}

// here reports whether an event belongs to the topic. If it is the topic of all, --topic may name a copy of it.
func (v *verification) here(ev *source.Event) (bool, error) {
	if _, one := v.Topics.Constant(); one || !v.Events.Emits(envelope.Classify(ev)) {
		return true, nil // the encoder leaves out what is not emitted
	}
	topic, err := v.Topics.Of(ev)
	return topic == v.topic, err
}
