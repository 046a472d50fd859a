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

// feedPass is what one reading of the feed says of all topics that are judged.
type feedPass struct {
	*verification
	state  *progressState
	filter envelope.Filter
	dead   *letters
	target bridge.Target // of the last seek

	of     map[string]*comparison // by topic
	only   *comparison            // of all events; nil: each has its topic
	stray  map[string]int64       // events for topics that are not judged, and should be
	oldest source.Segment         // of the feed
	holes  []hole
	over   []finished
	read   int64 // events

	slack *time.Duration    // BRIDGE_RESOLVED_SLACK before a change; nil: none is known
	was   *envelope.Encoder // as records were made before a change of settings; nil: none is known
	odd   []verify.Record   // to be explained by one of the tries
	tries []*attempt
}

// comparison is what the feed says that a topic has to hold.
type comparison struct {
	*verify.Replay
	pass    *feedPass
	encoder *envelope.Encoder
	counts  []int              // of partitions, that the topic has and had
	upTo    envelope.Timestamp // only events up to it are required; zero: all that are covered
	bound   string             // the same for readers
	begins  map[int32]source.Segment
	first   source.Segment // with an event for the topic
	ends    []int64        // for each finished segment, how many records there are up to its end

	records int64 // of the feed
	noted   int64 // of the topic
	given   int64 // events that the settings let through
	before  int64 // of them those before the begin of their partition
	sought  int64 // of them those before the target of the last seek
	older   int64 // records of segments, or chunks, that the feed no longer holds

	odd []verify.Record // the first that differ
	buf []byte
}

// forever is after every segment.
var forever = source.SegmentAt(time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC))

// walk reads the feed, and expects of the topics what the settings make of it.
func (v *verification) walk(ctx context.Context, p *feedPass, subjects []*subject, state *progressState) (err error) {
	p.state, p.filter, p.of, p.stray = state, v.Filter, map[string]*comparison{}, map[string]int64{}
	p.filter.To = v.End
	if p.filter.From, err = v.start(state); err != nil {
		return err
	}
	for _, s := range subjects {
		if s.feed, err = p.compare(ctx, s); err != nil {
			return err
		}
		p.of[s.name] = s.feed
		if _, one := v.Topics.Constant(); one { // whatever its name: it may be a copy
			p.only = s.feed
		}
	}
	if p.target, err = p.lastSeek(ctx, subjects); err != nil {
		return err
	}
	if p.dead, err = v.letters(ctx); err != nil { // after the state: what its cursors passed is there
		return err
	}
	for seg, err := range v.Feed.Segments(ctx, source.Segment{}) {
		if err != nil {
			return err
		}
		if p.oldest == (source.Segment{}) {
			p.oldest = seg
		}
		if err := p.segment(ctx, seg); err != nil {
			return err
		}
	}
	return nil
}

// compare returns the comparison of a topic.
func (p *feedPass) compare(ctx context.Context, s *subject) (c *comparison, err error) {
	mode := verify.ReplayExact
	switch {
	case s.compacted:
		mode = verify.ReplayLatest
	case !p.Transactional:
		mode = verify.ReplayRepeats
	}
	c = &comparison{Replay: verify.NewReplay(mode), pass: p, encoder: s.encoder, upTo: p.until}
	c.counts = append([]int{len(s.to)}, p.grownFrom...)
	if p.record.Envelope == envelope.Enriched {
		c.Made()
	}
	if len(p.grownFrom) > 0 {
		c.Moves()
	}
	if c.begins, err = s.begins(ctx); err != nil {
		return nil, err
	}
	if p.state != nil {
		c.bound = "the cursors in " + p.state.topic
	} else if c.upTo == (envelope.Timestamp{}) {
		// Without a state the topic's own markers say what has to be there, and a first pass finds them.
		if c.upTo, err = s.resolved(ctx); err != nil {
			return nil, err
		}
	}
	if c.upTo != (envelope.Timestamp{}) {
		c.bound = "the marker " + c.upTo.String()
	}
	return c, nil
}

// start returns the time before which the bridge left events out.
func (v *verification) start(s *progressState) (envelope.Timestamp, error) {
	switch {
	case s != nil && s.Frontier.Epoch > 0: // Start is where a seek went to, and there may be events from before
		return envelope.Timestamp{}, nil
	case s != nil && s.Frontier.Start != "":
		return envelope.ParseTimestamp(s.Frontier.Start)
	case s != nil, v.config.Start == "earliest":
		return envelope.Timestamp{}, nil
	case v.config.Start == "latest":
		return envelope.Timestamp{}, fmt.Errorf("BRIDGE_START=latest, and no state in %s.offsets says when that was: the feed can't be compared", v.Name)
	}
	return bridge.ParseTime(v.config.Start)
}

// lastSeek returns where the last seek went to, if there was one. Seeks may skip, so what is before it may be in a
// topic or not.
func (p *feedPass) lastSeek(ctx context.Context, subjects []*subject) (to bridge.Target, err error) {
	if p.state == nil || p.state.Frontier.Epoch == 0 {
		return to, nil
	}
	text := p.state.Frontier.Start // unless a marker says it
	if seek := p.state.Frontier.Seek; seek != nil {
		return bridge.ParseTarget(seek.To)
	}
	for _, s := range subjects {
		if err := s.scan(ctx, func(verify.Record) bool { return true }); err != nil {
			return to, err
		}
		if n := len(s.seeks); n > 0 {
			_, text, _ = strings.Cut(s.seeks[n-1], " ")
			break
		}
	}
	return bridge.ParseTarget(cmp.Or(text, "earliest"))
}

// begins returns, for partitions whose begin is gone, the segment of their first event: up to there events may be gone,
// too.
func (t *topic) begins(ctx context.Context) (map[int32]source.Segment, error) {
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
		pos, err := source.ParsePosition(string(r.Header("position")))
		begins[r.Partition] = pos.Segment
		if err != nil {
			unknown = fmt.Errorf("partition %d of %s begins at offset %d, and its first record does not say its place in the feed: %w",
				r.Partition, t.name, t.from[r.Partition], err)
		}
		return false
	})
	return begins, errors.Join(err, unknown)
}

// resolved returns the time up to which all partitions are resolved, or zero.
func (t *topic) resolved(ctx context.Context) (least envelope.Timestamp, err error) {
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
func (p *feedPass) segment(ctx context.Context, seg source.Segment) error {
	m, err := p.Feed.Manifest(ctx, seg)
	if err != nil {
		return err
	}
	for _, shard := range m.Shards {
		if err := p.shard(ctx, m, shard); err != nil {
			return err
		}
	}
	if m.Finalized {
		p.finish(m)
	}
	return nil
}

func (p *feedPass) shard(ctx context.Context, m source.Manifest, shard int) error {
	var b source.Batch
	r := p.Feed.Shard(m, shard, source.ShardPosition{})
	if err := r.Poll(ctx, m.Finalized); err != nil {
		return err
	}
	for {
		err := r.Next(ctx, &b)
		if errors.Is(err, io.EOF) {
			return nil
		}
		var d *source.DamageError
		if errors.As(err, &d) { // b has the events before it
			at := source.Position{Segment: m.Segment, Shard: shard}
			if d.Kind == source.Gone {
				err = p.skip(ctx, r, at, d)
			} else {
				err = p.dead.pass(ctx, p.Feed, r, at, d)
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
