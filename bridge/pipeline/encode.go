package pipeline

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/envelope"
	"blobfeed/source"
)

// encoding is the work on one block.
type encoding struct {
	pass *Pass
	set  *Settings
	most int // bytes that the records of the block may take
	b    *Block

	unknown *unknown

	scan *envelope.Scan // nil: events, not rows
	gone bool           // deletions, not rows

	topic    *Topic // of the event before: mostly this one's, too
	prepared bool   // the topics of the block
}

// encode fills the records of b from its events, and from what could not become one.
func (p *Pipeline) encode(ctx context.Context, d *Pass, b *Block) error {
	began := time.Now()
	b.reset(len(b.events.Events))
	e := &encoding{pass: d, set: &p.set, most: p.BlockBytes(), b: b, unknown: &p.unknown}
	pos := source.Position{Segment: d.Manifest.Segment, Shard: b.Shard, Chunk: b.events.Chunk, Offset: b.events.Offset}
	for i := range b.events.Events {
		pos.Index = i
		ev := &b.events.Events[i]
		err := e.event(ctx, ev, pos)
		var fault *EventError
		if errors.As(err, &fault) && p.set.DeadLetter != "" {
			err = b.keepEvent(fault, ev, pos, d.partSize())
		}
		if err != nil {
			return err
		}
	}
	b.finish(p.set.DeadLetter)
	b.Encoding = Between(began, time.Now())
	return nil
}

// reset makes room for n records.
func (b *Block) reset(n int) {
	b.Records, b.headers, b.New = b.Records[:0], b.headers[:0], nil
	b.Counts = Counts{}
	if size := min(b.encoded, maxKeptBytes); cap(b.whole) < size { // the block before did not fit
		b.whole = make([]byte, 0, size)
	}
	if cap(b.Records) < n {
		b.Records, b.headers = make([]kgo.Record, 0, n), make([]kgo.RecordHeader, 0, headersRoom*n)
		b.whole = make([]byte, 0, recordSize*n)
	}
	b.buf = b.whole[:0]
}

// finish adds the dead letters behind the records.
func (b *Block) finish(deadLetter string) {
	b.env.Forget() // I9
	b.Counts.Seen = b.Counts.Last
	if n := len(b.events.Events); n > 0 {
		if at, err := envelope.EventTime(&b.events.Events[n-1]); err == nil && at.After(b.Counts.Seen) {
			b.Counts.Seen = at
		}
	}
	b.encoded = b.Counts.Bytes
	b.Counts.Read, b.Counts.Emitted, b.Counts.Dead = len(b.events.Events), len(b.Records), len(b.dead)
	for i := range b.dead {
		b.addDead(deadLetter, &b.dead[i])
	}
}

// event appends the record of one event, if it makes one. An EventError says that the event is at fault.
func (e *encoding) event(ctx context.Context, ev *source.Event, pos source.Position) error {
	name, err := e.route(ev)
	if err == nil && name == "" {
		return nil
	}
	if err == nil {
		if e.topic == nil || e.topic.Name != name {
			if !e.prepared && !e.pass.Host.Known(name) {
				e.prepare(ctx)
			}
			if e.topic, err = e.pass.Host.Topic(ctx, name); err != nil {
				e.topic = nil
				return err
			}
		}
		if err = e.topic.Rejected; err == nil {
			err = e.append(ev, pos)
		}
	}
	if err != nil && e.scan != nil {
		return &RowError{Subject: ev.Subject, Err: err}
	}
	if err != nil {
		return &EventError{Blob: e.b.events.Blob, Offset: e.b.events.Offset, Index: pos.Index, Err: err}
	}
	return nil
}

// prepare gives the host all topics of the block, once, if one of them is new: a block may be the first of a hundred
// containers.
func (e *encoding) prepare(ctx context.Context) {
	e.prepared = true
	if _, one := e.set.Topics.Constant(); one {
		return
	}
	counts := e.b.Counts
	var names []string
	for i := range e.b.events.Events {
		name, err := e.route(&e.b.events.Events[i])
		if err == nil && name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	e.b.Counts = counts // each event is routed once more
	e.pass.Host.Prepare(ctx, names)
}

// route returns the topic of an event, "" for an event that makes no record: it must not create a topic.
func (e *encoding) route(ev *source.Event) (topic string, err error) {
	match := true
	if e.scan != nil {
		if !e.pass.Filter.MatchRow(ev) {
			e.b.Counts.Filtered++
			return "", nil
		}
		return e.set.Topics.Of(ev)
	}
	if e.pass.Filter.Active() {
		if match, err = e.pass.Filter.Match(ev); err != nil {
			return "", err
		}
	}
	if kind := envelope.Classify(ev); !match || !e.set.Events.Emits(kind) {
		e.b.Counts.Filtered++
		if match && kind == envelope.Unknown {
			e.b.Counts.Unknown++
			e.unknown.warn(e.set.Log, ev.EventType, e.pass.Manifest.Segment)
		}
		return "", nil
	}
	return e.set.Topics.Of(ev)
}

// append encodes an event behind those before it.
func (e *encoding) append(ev *source.Event, pos source.Position) error {
	b := e.b
	if b.Counts.Bytes > e.most {
		return &BlockTooLargeError{Limit: e.most}
	}
	// Records before this one keep their array, so it must not grow: they would keep all that it was, five times that.
	if cap(b.buf)-len(b.buf) < recordSize {
		b.buf = make([]byte, 0, 64*recordSize)
	}
	var buf []byte
	var err error
	emit := true
	switch end := b.buf[len(b.buf):]; {
	case e.gone:
		buf, err = e.topic.Encoder.AppendGone(end, &b.env, ev, e.scan)
	case e.scan != nil:
		buf, err = e.topic.Encoder.AppendRow(end, &b.env, ev, e.scan)
	default:
		buf, emit, err = e.topic.Encoder.Append(end, &b.env, ev, pos)
	}
	if err != nil || !emit {
		return err
	}
	if size := Size(&b.env); size > int(e.pass.Limit) {
		b.env.Key, b.env.Value = nil, nil // it is another array
		return &TooLargeError{Topic: e.topic.Name, Size: size, Limit: int(e.pass.Limit)}
	}
	b.buf = buf
	e.add()
	return nil
}

// Size returns how large a batch of just this record is, at most.
func Size(r *envelope.Record) int {
	const perBatch, perRecord, perHeader = 61, 40, 10
	size := perBatch + perRecord + len(r.Key) + len(r.Value)
	for _, h := range r.Headers {
		size += perHeader + len(h.Key) + len(h.Value)
	}
	return size
}

// add appends the record in b.env.
func (e *encoding) add() {
	b, topic := e.b, e.topic
	if topic.New && !slices.Contains(b.New, topic) {
		b.New = append(b.New, topic)
	}
	first := len(b.headers)
	size := len(b.env.Key) + len(b.env.Value)
	for _, h := range b.env.Headers {
		b.headers = append(b.headers, kgo.RecordHeader(h))
		size += len(h.Key) + len(h.Value)
	}
	b.headers = append(b.headers, e.pass.Headers...)
	at := time.UnixMilli(b.env.Millis)
	if e.scan == nil && at.After(b.Counts.Last) {
		b.Counts.Last = at
	}
	b.Counts.Bytes += size
	if b.env.Updated.Compare(e.pass.Promised) <= 0 {
		b.Counts.Late++
	}
	b.Records = append(b.Records, kgo.Record{
		Topic: topic.Name, Partition: e.set.Partition(b.env.Key, int(topic.Partitions)),
		Key: b.env.Key, Value: b.env.Value, Timestamp: at,
		// If headers grows, records before this one keep the old array, which stays as it is.
		Headers: b.headers[first:len(b.headers):len(b.headers)],
	})
	if b.env.Tombstone {
		null := b.Records[len(b.Records)-1]
		null.Value = nil
		b.Records = append(b.Records, null)
	}
}
