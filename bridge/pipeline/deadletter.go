package pipeline

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

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
func (b *Block) addDead(topic string, d *deadLetter) {
	headers := []kgo.RecordHeader{
		{Key: "position", Value: []byte(d.position)}, {Key: "reason", Value: []byte(d.reason)},
		{Key: "content", Value: []byte(d.content)}, {Key: "blob", Value: []byte(d.blob)},
		{Key: "offset", Value: strconv.AppendInt(nil, d.offset, 10)},
		{Key: "part", Value: fmt.Appendf(nil, "%d/%d", d.part, d.parts)},
	}
	b.Records = append(b.Records, kgo.Record{Topic: topic, Key: []byte(d.position), Value: d.raw, Headers: headers})
	b.Counts.Bytes += len(d.raw)
}

// partSize is how much of a dead letter fits into a record beside its headers.
func (d *Pass) partSize() int64 { return max(int64(d.Limit)-4096, int64(d.Limit)/2) }

// keepEvent keeps an event that cannot be encoded, or is too large, as JSON.
func (b *Block) keepEvent(e *EventError, ev *source.Event, pos source.Position, size int64) error {
	return b.keep(e, ev, deadLetter{position: pos.String(), content: "event", blob: e.Blob, offset: e.Offset,
		reason: plain.Clip(e.Err.Error())}, size)
}

// keepRow does the same for a blob of a listing.
func (b *Block) keepRow(e *RowError, ev *source.Event, scan, container string, size int64) error {
	_, blob, _ := strings.Cut(ev.Subject, "/blobs/")
	blob = container + "/" + blob
	return b.keep(e, ev, deadLetter{position: "scan/" + scan + "/" + blob, content: "row", blob: blob,
		reason: plain.Clip(e.Err.Error())}, size)
}

// keep keeps an event, in parts where one record does not hold it.
func (b *Block) keep(fault error, ev *source.Event, d deadLetter, size int64) error {
	raw, err := json.Marshal(ev)
	if err != nil {
		return fault
	}
	d.parts = max(1, (len(raw)+int(size)-1)/int(size))
	for d.part = 1; d.part <= d.parts; d.part++ {
		d.raw = raw[:min(int(size), len(raw))]
		raw = raw[len(d.raw):]
		b.dead = append(b.dead, d)
	}
	return nil
}

// keepChunk reads the bytes of a loss into b. Where they are more than one record holds, the parts before the last are
// sent in blocks that do not move the cursor: after a crash they can be sent again, each with the same position and
// part.
func (s *shard) keepChunk(ctx context.Context, b *Block, d *source.DamageError, loss source.Loss) error {
	size := s.pass.partSize()
	parts := int(max(1, (loss.To-loss.From+size-1)/size))
	pos := source.Position{Segment: s.pass.Manifest.Segment, Shard: s.number, Chunk: loss.Chunk, Offset: loss.From}
	for part := 1; part <= parts; part++ {
		from := loss.From + int64(part-1)*size
		if from < s.sent {
			continue // by an attempt that failed later
		}
		raw := make([]byte, min(size, loss.To-from))
		n, err := s.p.set.Feed.ReadAt(ctx, loss.Blob, raw, from)
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
		alone := s.p.pool.get(s.number)
		alone.dead = append(alone.dead, letter)
		alone.events, alone.Reading = source.Batch{Next: s.reader.Position()}, Step{}
		if err := s.p.encode(ctx, s.pass, alone); err != nil {
			return err
		}
		if err := s.send(ctx, alone); err != nil {
			return err
		}
		s.sent = from + size
	}
	return nil
}
