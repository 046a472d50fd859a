package bridge

import (
	"context"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/envelope"
	"blobfeed/source"
)

// batch is one block of a chunk, read and encoded. Batches are reused: one is free again when the transaction that
// holds its records is committed, since the client keeps the records until then.
type batch struct {
	shard   int
	events  source.Batch
	buf     []byte
	records []kgo.Record
	headers []kgo.RecordHeader
	env     envelope.Record

	bytes    int
	late     int
	filtered int
	last     time.Time
}

// pool keeps free batches. It is no sync.Pool: a garbage collection would empty that, and their buffers, which took many
// steps to grow, would grow again. What is in it is bounded by what was in use at a time (I9), and dropped when a worker
// has nothing to do.
type pool struct {
	mu   sync.Mutex
	free []*batch
}

func (p *pool) get() *batch {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.free)
	if n == 0 {
		return new(batch)
	}
	b := p.free[n-1]
	p.free = p.free[:n-1]
	return b
}

func (p *pool) put(bs []*batch) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free = append(p.free, bs...)
}

func (p *pool) drop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free = nil
}

// recordSize is about what a record takes; a wrong guess costs a copy.
const recordSize = 1536

// encode fills records from events.
func (b *batch) encode(w *worker, m source.Manifest, topic string, partitions int32) error {
	b.buf, b.records, b.headers = b.buf[:0], b.records[:0], b.headers[:0]
	b.bytes, b.late, b.filtered, b.last = 0, 0, 0, time.Time{}
	if n := len(b.events.Events); cap(b.records) < n {
		b.records, b.headers, b.buf = make([]kgo.Record, 0, n), make([]kgo.RecordHeader, 0, 9*n), make([]byte, 0, recordSize*n)
	}
	pos := envelope.Position{Segment: m.Segment.String(), Shard: shardText(b.shard), Chunk: b.events.Chunk, Offset: b.events.Offset}
	for i := range b.events.Events {
		pos.Index = i
		var emit bool
		var err error
		if w.filter.Active() {
			match, err := w.filter.Match(&b.events.Events[i])
			if err != nil {
				return &EventError{Blob: b.events.Blob, Offset: b.events.Offset, Index: i, Err: err}
			}
			if !match {
				b.filtered++
				continue
			}
		}
		if b.buf, emit, err = w.Encoder.Append(b.buf, &b.env, &b.events.Events[i], pos); err != nil {
			return &EventError{Blob: b.events.Blob, Offset: b.events.Offset, Index: i, Err: err}
		}
		if !emit {
			continue
		}
		b.add(topic, w.Partition(b.env.Key, int(partitions)))
		if w.late(b.env.Updated) {
			b.late++
		}
	}
	return nil
}

func (b *batch) add(topic string, partition int32) {
	first := len(b.headers)
	size := len(b.env.Key) + len(b.env.Value)
	for _, h := range b.env.Headers {
		b.headers = append(b.headers, kgo.RecordHeader(h))
		size += len(h.Key) + len(h.Value)
	}
	at := time.UnixMilli(b.env.Millis)
	if at.After(b.last) {
		b.last = at
	}
	b.bytes += size
	b.records = append(b.records, kgo.Record{
		Topic: topic, Partition: partition, Key: b.env.Key, Value: b.env.Value, Timestamp: at,
		// If headers grows, records before this one keep the old array, which stays as it is.
		Headers: b.headers[first:len(b.headers):len(b.headers)],
	})
}

// readShard sends the batches of one shard, in order, until the end of its listing. What fails is tried again for ever:
// the position is unchanged, so nothing is skipped (I8), and the other shards go on.
func (w *worker) readShard(ctx context.Context, m source.Manifest, shard int, r *source.ShardReader, out chan<- *batch) error {
	topic, partitions := w.Topic, w.frontier.Topics[w.Topic] // I5: the frontier's count, not the broker's of this moment
	try := func(f func(context.Context) error) error { return w.retry(ctx, w.p, f) }
	if err := try(func(ctx context.Context) error { return r.Poll(ctx, m.Finalized) }); err != nil {
		return err
	}
	for {
		b := w.pool.get()
		b.shard = shard
		end := false
		if err := try(func(ctx context.Context) error {
			err := r.Next(ctx, &b.events)
			if end = isEOF(err); end {
				return nil
			}
			return err
		}); err != nil || end {
			return err
		}
		// An event that can't be encoded is not skipped either: the shard stays here, and says so.
		if err := try(func(context.Context) error { return b.encode(w, m, topic, partitions) }); err != nil {
			return err
		}
		select {
		case out <- b:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
