package bridge

import (
	"context"
	"errors"
	"sync"
	"time"
	"unsafe"

	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/envelope"
	"blobfeed/internal/topics"
	"blobfeed/offsets"
	"blobfeed/source"
)

// batch is one block of a chunk, read and encoded. Batches are reused: one is free again when the transaction that
// holds its records is committed, since the client keeps the records until then.
type batch struct {
	shard   int
	events  source.Batch
	whole   []byte // an array for what is encoded
	buf     []byte // the end of what is used of it, or of another one where it was too small
	records []kgo.Record
	headers []kgo.RecordHeader
	env     envelope.Record

	dead []deadLetter // what could not become a record
	gap  bool         // a chunk before it is gone
	left int64        // bytes of the shard's listing that come after it

	pins map[string]offsets.Pin // of topics that the frontier does not know

	bytes    int   // of the records
	encoded  int   // of bytes, without dead letters
	held     int64 // of the instance's memory
	late     int
	filtered int
	last     time.Time // of the records
	seen     time.Time // of the events, also where the last ones are left out

	reading, encoding Step
}

// pool keeps free batches. It is no sync.Pool: a garbage collection would empty that, and their buffers, which took many
// steps to grow, would grow again. All leases share it, so what is in it is bounded by what was in use at a time (I9). It is
// dropped when a worker has nothing to do.
type pool struct {
	mu   sync.Mutex
	free []*batch
	made int // since the start
}

// get returns a batch for events of a shard.
func (p *pool) get(shard int) *batch {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.free)
	if n == 0 {
		p.made++
		return &batch{shard: shard}
	}
	b := p.free[n-1]
	p.free = p.free[:n-1]
	b.shard, b.gap, b.held = shard, false, 0
	return b
}

func (p *pool) put(bs []*batch) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, b := range bs {
		// I9: what is seen no more must not stay in memory. Each of several large blocks could make another batch large.
		clear(b.records)
		clear(b.headers)
		clear(b.env.Headers)
		b.env.Key, b.env.Value, b.buf, b.dead = nil, nil, nil, nil
		if cap(b.whole) <= maxKeptBytes && cap(b.events.Events) <= maxKeptEvents {
			p.free = append(p.free, b)
		}
	}
}

// maxKeptBytes and maxKeptEvents are how large a batch may be that waits for another block. Real ones have 120 events
// of 1 KB.
const (
	maxKeptBytes  = 4 << 20
	maxKeptEvents = 2048
)

func (p *pool) drop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free = nil
}

// Sizes of what a batch keeps arrays of.
const (
	eventSize  = int(unsafe.Sizeof(source.Event{}))
	kafkaSize  = int(unsafe.Sizeof(kgo.Record{}))
	headerSize = int(unsafe.Sizeof(kgo.RecordHeader{}))
)

// footprint is the memory that b takes until its transaction is committed: not only its records, of which a filter
// may leave
// none, but all that was read and made room for (I9).
func (b *batch) footprint() int {
	size := max(b.events.Memory, cap(b.events.Events)*eventSize) + max(cap(b.whole), b.bytes) +
		cap(b.records)*kafkaSize + cap(b.headers)*headerSize
	for i := range b.dead {
		size += len(b.dead[i].raw)
	}
	return size
}

// recordSize is about what a record takes; a wrong guess costs a copy.
const recordSize = 1536

// encode fills records from events, and from what can't become one.
func (b *batch) encode(ctx context.Context, w *worker, m source.Manifest) error {
	began := w.begin()
	b.records, b.headers = b.records[:0], b.headers[:0]
	if size := min(b.encoded, maxKeptBytes); cap(b.whole) < size { // the block before did not fit
		b.whole = make([]byte, 0, size)
	}
	b.bytes, b.late, b.filtered, b.last, b.pins = 0, 0, 0, time.Time{}, nil
	if n := len(b.events.Events); cap(b.records) < n {
		b.records, b.headers = make([]kgo.Record, 0, n), make([]kgo.RecordHeader, 0, 9*n)
		b.whole = make([]byte, 0, recordSize*n)
	}
	b.buf = b.whole[:0]
	pos := envelope.Position{Segment: m.Segment.String(), Shard: shardText(b.shard), Chunk: b.events.Chunk, Offset: b.events.Offset}
	var out *outlet // of the event before: mostly this one's, too
	for i := range b.events.Events {
		pos.Index = i
		ev := &b.events.Events[i]
		topic, err := b.route(w, ev)
		if err == nil && topic != "" && (out == nil || out.topic != topic) {
			var refused *topics.RejectedError
			if out, err = w.outlet(ctx, topic); err != nil && !errors.As(err, &refused) {
				return err // nothing is wrong with the event
			}
		}
		emit := false
		if err == nil && topic != "" {
			emit, err = b.event(w, out, ev, pos)
		}
		if err != nil {
			e := &EventError{Blob: b.events.Blob, Offset: b.events.Offset, Index: i, Err: err}
			if w.DeadLetter == "" {
				return e
			}
			if err := b.deadEvent(w, e, ev, pos); err != nil {
				return err
			}
			continue
		}
		if !emit {
			continue
		}
		b.add(out, w.Partition(b.env.Key, int(out.partitions)), w.epochHeader)
		if w.late(b.env.Updated) {
			b.late++
		}
	}
	b.seen = b.last
	if n := len(b.events.Events); n > 0 {
		if at, err := envelope.EventTime(&b.events.Events[n-1]); err == nil && at.After(b.seen) {
			b.seen = at
		}
	}
	b.encoded = b.bytes
	for i := range b.dead {
		b.addDead(w.DeadLetter, &b.dead[i])
	}
	b.encoding = since(began)
	return nil
}

// route returns the topic of an event, "" for one that makes no record: it must not create a topic.
func (b *batch) route(w *worker, ev *source.Event) (topic string, err error) {
	match := true
	if w.filter.Active() {
		if match, err = w.filter.Match(ev); err != nil {
			return "", err
		}
	}
	if !match || !w.Events.Emits(envelope.Classify(ev)) {
		b.filtered++
		return "", nil
	}
	return w.Topics.Of(ev)
}

// event encodes one event into env. Emit is false for one that makes no record.
func (b *batch) event(w *worker, out *outlet, ev *source.Event, pos envelope.Position) (emit bool, err error) {
	if most := w.batchBytes(); b.bytes > most {
		return false, &BlockTooLargeError{Limit: most}
	}
	// Records before this one keep their array, so it must not grow: they would keep all that it was, five times that.
	if cap(b.buf)-len(b.buf) < recordSize {
		b.buf = make([]byte, 0, 64*recordSize)
	}
	buf, emit, err := out.encoder.Append(b.buf[len(b.buf):], &b.env, ev, pos)
	if err != nil || !emit {
		return false, err
	}
	if size := sizeOf(&b.env); size > int(w.limit) {
		b.env.Key, b.env.Value = nil, nil // it is another array
		return false, &TooLargeError{Topic: out.topic, Size: size, Limit: int(w.limit)}
	}
	b.buf = buf
	return true, nil
}

// sizeOf is how large a batch of just this record is, at most.
func sizeOf(r *envelope.Record) int {
	const perBatch, perRecord, perHeader = 61, 40, 10
	size := perBatch + perRecord + len(r.Key) + len(r.Value)
	for _, h := range r.Headers {
		size += perHeader + len(h.Key) + len(h.Value)
	}
	return size
}

// add appends the record in env, and what goes with it.
func (b *batch) add(out *outlet, partition int32, epoch []kgo.RecordHeader) {
	if out.found {
		if b.pins == nil {
			b.pins = map[string]offsets.Pin{}
		}
		b.pins[out.topic] = out.pin
	}
	first := len(b.headers)
	size := len(b.env.Key) + len(b.env.Value)
	for _, h := range b.env.Headers {
		b.headers = append(b.headers, kgo.RecordHeader(h))
		size += len(h.Key) + len(h.Value)
	}
	b.headers = append(b.headers, epoch...)
	at := time.UnixMilli(b.env.Millis)
	if at.After(b.last) {
		b.last = at
	}
	b.bytes += size
	b.records = append(b.records, kgo.Record{
		Topic: out.topic, Partition: partition, Key: b.env.Key, Value: b.env.Value, Timestamp: at,
		// If headers grows, records before this one keep the old array, which stays as it is.
		Headers: b.headers[first:len(b.headers):len(b.headers)],
	})
	if b.env.Tombstone {
		null := b.records[len(b.records)-1]
		null.Value = nil
		b.records = append(b.records, null)
	}
}
