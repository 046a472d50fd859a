package judge

import (
	"fmt"
	"maps"
	"slices"

	"blobfeed/bridge"
	"blobfeed/envelope"
	"blobfeed/source"
	"blobfeed/verify"
)

// block compares the events of a block.
func (p *feedPass) block(m source.Manifest, shard int, b *source.Batch) error {
	covered := p.state == nil || p.state.covers(m.Segment, shard, b.Next)
	pos := source.Position{Segment: m.Segment, Shard: shard, Chunk: b.Chunk, Offset: b.Offset}
	var buf []byte
	var rec envelope.Record
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
			err = p.v.sharing.fits(p.expected(&rec))
		}
		if emit && err == nil {
			var was *envelope.Record
			if was, err = p.formerly(c, ev, pos, rec.Key); err == nil {
				c.event(m.Segment, &rec, was, covered && !dead)
			}
		}
		if err != nil {
			return &bridge.EventError{Blob: b.Blob, Offset: b.Offset, Index: i, Err: err}
		}
	}
	return nil
}

// at returns the comparison for the topic of an event, or nil if that topic is not judged.
func (p *feedPass) at(ev *source.Event, covered bool) (*comparison, error) {
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

// event adds the record of an event, and the record by the settings before a change.
func (c *comparison) event(seg source.Segment, rec, was *envelope.Record, required bool) {
	c.given++
	if c.first == (source.Segment{}) {
		c.first = seg
	}
	required = required && (c.pass.state != nil || c.upTo != (envelope.Timestamp{})) &&
		(c.upTo == (envelope.Timestamp{}) || rec.Updated.Compare(c.upTo) <= 0)
	if c.pass.target.After(seg, rec.Updated) {
		required = false
		c.sought++
	}
	for _, n := range c.counts {
		if begin, cut := c.begins[c.pass.v.Partition(rec.Key, n)]; cut && seg.Compare(begin) <= 0 {
			required = false
			c.before++
			break
		}
	}
	forms := []func(*envelope.Record) verify.Record{c.pass.expected}
	if rec.Tombstone {
		forms = append(forms, c.pass.tombstone)
	}
	for _, form := range forms {
		c.Expect(form(rec), required)
		c.records++
		if was != nil {
			c.Or(form(was))
		}
	}
}

// expected returns the record of an event.
func (p *feedPass) expected(rec *envelope.Record) verify.Record {
	r := verify.Record{Key: rec.Key, Value: rec.Value, Millis: rec.Millis, Avro: p.v.avro}
	r.Headers = make([]verify.Header, len(rec.Headers))
	for i, h := range rec.Headers {
		r.Headers[i] = verify.Header(h)
	}
	return r
}

// tombstone returns the second record of a deletion.
func (p *feedPass) tombstone(rec *envelope.Record) verify.Record {
	second := *rec
	second.Value = nil
	return p.expected(&second)
}

// formerly returns the record of an event by the settings before a change, or looks for that change.
func (p *feedPass) formerly(
	c *comparison, ev *source.Event, pos source.Position, key []byte,
) (was *envelope.Record, err error) {
	if p.tries != nil {
		return nil, p.compareOdd(c, ev, pos, key)
	}
	if p.was == nil {
		return nil, nil
	}
	was = new(envelope.Record)
	c.buf, _, err = p.was.Append(c.buf[:0], was, ev, pos)
	return was, err
}

// strayed returns a report for each missing topic.
func (p *feedPass) strayed() (reports []*Report) {
	for _, topic := range slices.Sorted(maps.Keys(p.stray)) {
		problem := fmt.Sprintf("%d events of the feed are for this topic, and %s does not know it",
			p.stray[topic], p.state.topic)
		reports = append(reports, &Report{Topic: topic, Checks: []checkReport{{
			Name: "replay", Status: Broken, Promise: replayPromise, Failures: []failureReport{{Problem: problem}},
		}}})
	}
	return reports
}
