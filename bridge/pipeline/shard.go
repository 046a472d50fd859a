package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"blobfeed/internal/plain"
	"blobfeed/source"
)

// shard reads one shard of a pass to the end of its listing. It belongs to one goroutine.
type shard struct {
	p      *Pipeline
	pass   *Pass
	number int
	reader *source.ShardReader
	out    chan<- *Block
	events []source.Event // an array for those of a block, which its records do not need

	// The damage that Next reported last, and how often in a row.
	damage   string
	attempts int
	sent     int64 // bytes of it before this offset are on their way to the dead-letter topic
}

// maxAttempts is how often damage must show, read again each time, before it is the blob's and not the copy's; and how
// often an encoder must be missing before the other shards continue without this one.
const maxAttempts = 3

// warnOfLack logs what of a shard may be missing.
func (p *Pipeline) warnOfLack(d *Pass, number int, lacks string) {
	if lacks != "" {
		p.set.Log.Warn("chunks of the feed may be missing", "lease", d.Lease, "segment", d.Manifest.Segment, "shard",
			source.ShardName(number), "reason", lacks)
	}
}

// run sends the blocks of the shard, in order. Failures are retried without end: the position is unchanged, so nothing
// is skipped (I8), and the other shards continue.
func (s *shard) run(ctx context.Context) error {
	defer s.reader.Stop()
	began := time.Now()
	err := s.pass.Host.Retry(ctx, func(ctx context.Context) error {
		return s.reader.Poll(ctx, s.pass.Manifest.Finalized)
	})
	if err != nil {
		return err
	}
	s.p.warnOfLack(s.pass, s.number, s.reader.Lacks())
	s.pass.Backlog.List(s.number, s.reader.Listed())
	s.pass.Backlog.Set(s.number, s.reader.Ahead()) // also of a shard whose first block is long in coming
	for {
		b := s.p.pool.get(s.number)
		b.events.Events = s.events
		s.reader.LimitWindow(s.p.memory.window())
		end, err := s.next(ctx, b)
		if err != nil || end {
			return err
		}
		b.Reading = Between(began, time.Now())
		if err := s.encode(ctx, b); err != nil {
			return err
		}
		s.events = b.takeEvents()
		if err := s.send(ctx, b); err != nil {
			return err
		}
		began = time.Now()
	}
}

// next fills b with the next block, or with what is left out for damage.
func (s *shard) next(ctx context.Context, b *Block) (end bool, err error) {
	err = s.pass.Host.Retry(ctx, func(ctx context.Context) error {
		err := s.reader.Borrow(ctx, &b.events) // encoded before the next call
		if end = errors.Is(err, io.EOF); end {
			return nil
		}
		var d *source.DamageError
		switch {
		case !errors.As(err, &d):
			return err
		case !s.confirmed(d):
			return d
		}
		if err = s.leaveOut(ctx, b, d); errors.As(err, &d) {
			return s.stay(err)
		}
		return err
	})
	return end, err
}

// stay makes err end the run of the shard, unless no later pass would try again.
func (s *shard) stay(err error) error {
	if s.pass.Manifest.Finalized || s.p.set.Once {
		return err
	}
	return &StayError{err}
}

// confirmed reports whether d has shown often enough to do about it what the settings say.
func (s *shard) confirmed(d *source.DamageError) bool {
	if text := d.Error(); text != s.damage {
		s.damage, s.attempts, s.sent = text, 0, 0
	}
	s.attempts++
	return s.attempts >= maxAttempts
}

// leaveOut does about confirmed damage what the settings say: nothing, so that it is reported again and again, or b
// becomes the block that continues behind it. The events before the damage and the last of its raw bytes are in one
// block with the position behind them, and so in one transaction (I1).
func (s *shard) leaveOut(ctx context.Context, b *Block, d *source.DamageError) error {
	if d.Kind == source.Gone && !s.p.set.SkipGaps {
		return s.pass.Host.Lost(ctx, s.pass.Manifest.Segment, d.Blob)
	}
	if d.Kind != source.Gone && s.p.set.DeadLetter == "" {
		return d
	}
	loss, ok, err := s.reader.Loss(ctx, d)
	if err != nil {
		return err
	}
	if !ok {
		return d
	}
	if d.Kind == source.Gone {
		s.p.set.Log.Warn("history is lost; continuing at the next chunk",
			"lease", s.pass.Lease, "segment", s.pass.Manifest.Segment, "error", d)
		b.Gap = true
	} else if err := s.keepChunk(ctx, b, d, loss); err != nil {
		return err
	}
	s.reader.Skip(loss)
	b.events.Next = s.reader.Position()
	return nil
}

// encode makes records of b. An event that cannot be encoded is not skipped: the shard stays at it, and reports it,
// unless there is a dead-letter topic.
func (s *shard) encode(ctx context.Context, b *Block) error {
	pieces, attempts := len(b.dead), 0
	return s.pass.Host.Retry(ctx, func(ctx context.Context) error {
		b.dead = b.dead[:pieces] // an attempt finds the later ones again
		err := s.p.encode(ctx, s.pass, b)
		var missing *EncoderError
		if errors.As(err, &missing) {
			if attempts++; attempts >= maxAttempts {
				return s.stay(err)
			}
		}
		var large *TooLargeError
		if errors.As(err, &large) {
			return s.pass.Host.TooLarge(ctx, err)
		}
		return err
	})
}

func (s *shard) send(ctx context.Context, b *Block) error {
	b.Left = s.reader.Ahead()
	if err := s.p.memory.acquire(ctx, b); err != nil {
		return err
	}
	select {
	case s.out <- b:
		return nil
	case <-ctx.Done():
		s.p.memory.release(b)
		return ctx.Err()
	}
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
		alone.events, alone.Reading = source.Batch{Next: s.reader.Position()}, Span{}
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
