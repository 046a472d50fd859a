package judge

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

// feedPass is one reading of the feed, for all judged topics.
type feedPass struct {
	v      *verification
	state  *progressState
	filter envelope.Filter
	dead   *letters
	target bridge.Target // of the last seek

	of     map[string]*comparison // by topic
	only   *comparison            // of all events; nil: a template gives each event its topic
	stray  map[string]int64       // events for topics that the state does not know
	oldest source.Segment         // of the feed
	holes  []hole
	over   []finished
	read   int64 // events

	slack *time.Duration    // BRIDGE_RESOLVED_SLACK before a change; nil: no change is known
	was   *envelope.Encoder // by the settings before a change; nil: no change is known
	odd   []verify.Record   // that one of the tries may explain
	tries []*attempt
}

// comparison is what the feed requires of a topic.
type comparison struct {
	*verify.Replay
	pass    *feedPass
	encoder *envelope.Encoder
	counts  []int              // of partitions, now and before
	upTo    envelope.Timestamp // only events up to it are required; zero: all that the state covers
	bound   string             // the same for people
	begins  map[int32]source.Segment
	first   source.Segment // with an event for the topic
	ends    []int64        // for each finished segment, how many records there are up to its end

	records int64 // of the feed
	noted   int64 // of the topic
	given   int64 // events that the settings select
	before  int64 // of them those before the start of their partition
	sought  int64 // of them those before the target of the last seek
	older   int64 // records of segments or chunks that the feed has no more

	odd []verify.Record // the first that differ
	buf []byte
}

// endless is after every segment.
var endless = source.SegmentAt(time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC))

// walk reads the feed, and adds to the comparisons what the settings make of each event.
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
		if _, one := v.Topics.Constant(); one { // under any name: the topic may be a copy
			p.only = s.feed
		}
	}
	if p.target, err = p.lastSeek(ctx, subjects); err != nil {
		return err
	}
	if p.dead, err = v.letters(ctx); err != nil { // after the state: it has what the cursors passed
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
	case !p.v.Transactional:
		mode = verify.ReplayRepeats
	}
	c = &comparison{Replay: verify.NewReplay(mode), pass: p, encoder: s.encoder, upTo: p.v.Until}
	c.counts = append([]int{len(s.to)}, p.v.GrownFrom...)
	if p.v.Record.Envelope == envelope.Enriched {
		c.Made()
	}
	if len(p.v.GrownFrom) > 0 {
		c.Moves()
	}
	if c.begins, err = s.begins(ctx); err != nil {
		return nil, err
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
	case s != nil, v.Frozen["BRIDGE_START"] == "earliest":
		return envelope.Timestamp{}, nil
	case v.Frozen["BRIDGE_START"] == "latest":
		return envelope.Timestamp{}, fmt.Errorf("comparing the feed: BRIDGE_START=latest, and %s.offsets has no state "+
			"with the time of the start: set BRIDGE_START to that time", v.Name)
	}
	return bridge.ParseTime(v.Frozen["BRIDGE_START"])
}

// lastSeek returns the target of the last seek, if any. A seek may skip events, so events before the target may be in a
// topic or not.
func (p *feedPass) lastSeek(ctx context.Context, subjects []*subject) (to bridge.Target, err error) {
	if p.state == nil || p.state.Frontier.Epoch == 0 {
		return to, nil
	}
	text := p.state.Frontier.Start // unless a marker names it
	if seek := p.state.Frontier.Seek; seek != nil {
		return bridge.ParseTarget(seek.To)
	}
	for _, s := range subjects {
		if err := s.scan(ctx, all); err != nil {
			return to, err
		}
		if n := len(s.seeks); n > 0 {
			_, text, _ = strings.Cut(s.seeks[n-1], " ")
			break
		}
	}
	return bridge.ParseTarget(cmp.Or(text, "earliest"))
}

// begins returns, for partitions whose start is deleted, the segment of their first event. Events up to that segment
// may be deleted, too.
func (t *topic) begins(ctx context.Context) (map[int32]source.Segment, error) {
	begins, from, to := map[int32]source.Segment{}, map[int32]int64{}, map[int32]int64{}
	for p, at := range t.from {
		if at > 0 {
			begins[p], from[p], to[p] = endless, at, t.to[p]
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
			unknown = fmt.Errorf("partition %d of %s starts at offset %d, and its first record has no position in the feed: %w",
				r.Partition, t.name, t.from[r.Partition], err)
		}
		return false
	})
	return begins, errors.Join(err, unknown)
}

// all wants every record.
func all(verify.Record) (more bool) { return true }

// resolved returns the time of the oldest last marker of a partition, or zero if a partition has no marker.
func (t *topic) resolved(ctx context.Context) (least envelope.Timestamp, err error) {
	if err := t.scan(ctx, all); err != nil || len(t.markers) < len(t.to) {
		return least, err
	}
	for _, at := range t.markers {
		if least == (envelope.Timestamp{}) || at.Compare(least) < 0 {
			least = at
		}
	}
	return least, nil
}

// segment compares the events of a segment, shard by shard: a blob is in one shard.
func (p *feedPass) segment(ctx context.Context, seg source.Segment) error {
	m, err := p.v.Feed.Manifest(ctx, seg)
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
	r := p.v.Feed.Shard(m, shard, source.ShardPosition{})
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
