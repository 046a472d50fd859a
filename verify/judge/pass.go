package judge

import (
	"fmt"
	"maps"
	"slices"

	"blobfeed/bridge"
	"blobfeed/envelope"
	"blobfeed/internal/plain"
	"blobfeed/resolved"
	"blobfeed/source"
)

// feedScan is one scan of the feed, for all judged topics.
type feedScan struct {
	v      *verification
	state  *progressState
	filter envelope.Filter
	dead   *letters
	sought sought // what seeks may have skipped

	of     map[string]*comparison // by topic
	only   *comparison            // of all events; nil: a template gives each event its topic
	stray  map[string]int64       // events for topics that the state does not know
	extent extent
	over   []finished
	read   int64 // events

	inquiry *inquiry // of a second scan: which expected records are looked up
}

// block compares the events of a block.
func (p *feedScan) block(m source.Manifest, shard int, b *source.Batch) error {
	covered := p.state == nil || p.state.covers(m.Segment, shard, b.Next)
	pos := source.Position{Segment: m.Segment, Shard: shard, Chunk: b.Chunk, Offset: b.Offset}
	var buf []byte
	var rec envelope.Record
	if p.v.Seen != nil {
		p.v.Seen.Events.Add(int64(len(b.Events)))
	}
	for i := range b.Events {
		ev := &b.Events[i]
		pos.Index = i
		p.read++
		match, err := p.filter.Match(ev)
		var c *comparison
		emit := false
		if err == nil && match {
			c, err = p.at(ev, covered)
		}
		if err == nil && c != nil {
			buf, emit, err = c.encoder.Append(buf[:0], &rec, ev, pos)
		}
		dead := p.dead.event(pos, ev)
		if err != nil && dead {
			continue
		}
		if err != nil {
			return &bridge.EventError{Blob: b.Blob, Offset: b.Offset, Index: i, Err: err}
		}
		if emit && p.v.sharing != nil {
			err = p.v.sharing.fits(recordOf(&rec, p.v.avro))
		}
		switch {
		case !emit || err != nil:
		case p.inquiry != nil:
			p.inquiry.event(c, pos, &rec)
		default:
			c.event(m.Segment, &rec, covered && !dead)
		}
		if err != nil {
			return &bridge.EventError{Blob: b.Blob, Offset: b.Offset, Index: i, Err: err}
		}
	}
	return nil
}

// at returns the comparison for the topic of an event, or nil if that topic is not judged.
func (p *feedScan) at(ev *source.Event, covered bool) (*comparison, error) {
	if p.only != nil || !p.v.Events.Emits(envelope.Classify(ev)) {
		return p.only, nil // the encoder leaves out events that are not emitted
	}
	topic, err := p.v.Topics.Of(ev)
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
	f.says = resolved.After(m, p.v.ResolvedSlack, envelope.Timestamp{})
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
			Name: check, Status: Broken, Promise: promise, Failures: []failureReport{{Problem: problem}},
		}}})
	}
	return reports
}
