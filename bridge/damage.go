package bridge

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/internal/plain"
	"blobfeed/source"
)

// deadLetter is something of the feed that could not become a record: a piece of a chunk, or of an event as JSON.
type deadLetter struct {
	position    string // segment/shard/chunk/offset/index; the index is 0 for a piece of a chunk
	content     string // "chunk" or "event"
	blob        string
	offset      int64 // of raw in the blob; for an event that of its block
	part, parts int   // from 1
	reason      string
	raw         []byte
}

// addDead appends the record of a dead letter.
func (b *batch) addDead(topic string, d *deadLetter) {
	headers := []kgo.RecordHeader{
		{Key: "position", Value: []byte(d.position)}, {Key: "reason", Value: []byte(d.reason)},
		{Key: "content", Value: []byte(d.content)}, {Key: "blob", Value: []byte(d.blob)},
		{Key: "offset", Value: strconv.AppendInt(nil, d.offset, 10)},
		{Key: "part", Value: fmt.Appendf(nil, "%d/%d", d.part, d.parts)},
	}
	b.records = append(b.records, kgo.Record{Topic: topic, Key: []byte(d.position), Value: d.raw, Headers: headers})
	b.bytes += len(d.raw)
}

// partSize is how much of a dead letter fits into a record beside its headers.
func (w *worker) partSize() int64 { return max(int64(w.limit)-4096, int64(w.limit)/2) }

// deadEvent keeps an event that can't be encoded, or is too large, as JSON.
func (b *batch) deadEvent(w *worker, e *EventError, ev *source.Event, pos source.Position) error {
	raw, err := json.Marshal(ev)
	if err != nil {
		return e
	}
	d := deadLetter{position: pos.String(), content: "event", blob: e.Blob, offset: e.Offset,
		reason: plain.Clip(e.Err.Error())}
	size := int(w.partSize())
	d.parts = max(1, (len(raw)+size-1)/size)
	for d.part = 1; d.part <= d.parts; d.part++ {
		d.raw = raw[:min(size, len(raw))]
		raw = raw[len(d.raw):]
		b.dead = append(b.dead, d)
	}
	return nil
}

// leaveOut does about confirmed damage what the settings say: nothing, so that it is reported again and again, or b
// becomes what goes on behind it. The events before the damage and the last of its raw bytes are in one batch with the
// position behind them, and so in one transaction (I1).
func (s *shardPass) leaveOut(ctx context.Context, b *batch, d *source.DamageError) error {
	if d.Kind == source.Gone && !s.SkipGaps {
		return s.chunkLost(ctx, d)
	}
	if d.Kind != source.Gone && s.DeadLetter == "" {
		return s.advise(d)
	}
	loss, ok, err := s.r.Loss(ctx, d)
	if err != nil {
		return err
	}
	if !ok {
		return d
	}
	if d.Kind == source.Gone {
		s.Log.Warn("history is lost; going on at the next chunk", "lease", s.p, "segment", s.m.Segment, "error", d)
		b.gap = true
	} else if err := s.deadChunk(ctx, b, d, loss); err != nil {
		return err
	}
	s.r.Skip(loss)
	b.events.Next = s.r.Position()
	return nil
}

// advise returns d with what an operator can do about it here, in place of what any reader could.
func (w *worker) advise(d *source.DamageError) error {
	if d.Kind != source.BadBytes || w.DeadLetter != "" {
		return d
	}
	a := *d
	a.Hint = fmt.Sprintf("bridge dump --at %d %s shows whether the service's copy has it, too; BRIDGE_ON_ERROR=dead_letter puts these bytes "+
		"into the dead-letter topic and goes on behind them; runbook: BridgeDamage in docs/operations.md", d.Offset, d.Blob)
	return &a
}

// deadChunk reads the bytes of a loss into b. Where they are more than one record holds, those before go on their own
// way, in batches that do not move the cursor: a crash can make them come again, each with the same position and part.
func (s *shardPass) deadChunk(ctx context.Context, b *batch, d *source.DamageError, loss source.Loss) error {
	size := s.partSize()
	parts := int(max(1, (loss.To-loss.From+size-1)/size))
	pos := source.Position{Segment: s.m.Segment, Shard: s.shard, Chunk: loss.Chunk, Offset: loss.From}
	for part := 1; part <= parts; part++ {
		from := loss.From + int64(part-1)*size
		if from < s.sent {
			continue // by an attempt that failed later
		}
		raw := make([]byte, min(size, loss.To-from))
		n, err := s.Feed.ReadAt(ctx, loss.Blob, raw, from)
		if err != nil {
			return fmt.Errorf("reading %s at %d: %w", loss.Blob, from, err)
		}
		if n < len(raw) {
			return fmt.Errorf("reading %s at %d: it ends after %d bytes", loss.Blob, from, n)
		}
		letter := deadLetter{position: pos.String(), content: "chunk", blob: loss.Blob, offset: from, part: part,
			parts: parts, reason: plain.Clip(d.Error()), raw: raw}
		if part == parts {
			b.dead = append(b.dead, letter)
			break
		}
		alone := s.pool.get(s.shard)
		alone.dead = append(alone.dead, letter)
		alone.events, alone.reading = source.Batch{Next: s.r.Position()}, Step{}
		if err := alone.encode(ctx, s.worker, s.m); err != nil {
			return err
		}
		if err := s.send(ctx, alone); err != nil {
			return err
		}
		s.sent = from + size
	}
	return nil
}
