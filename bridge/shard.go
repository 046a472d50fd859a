package bridge

import (
	"context"
	"errors"
	"io"

	"blobfeed/source"
)

// shardPass reads one shard to the end of its listing.
type shardPass struct {
	*worker
	m     source.Manifest
	shard int
	r     *source.ShardReader
	out   chan<- *batch

	// The damage that Next reported last, and how often in a row.
	damage   string
	attempts int
	sent     int64 // bytes of it before this offset are on their way to the dead-letter topic
}

// damageAttempts is how often damage must show, read anew each time, before it is taken as the blob's and not the copy's.
const damageAttempts = 3

// errLimitChanged ends the hold of a lease: the topics take larger records now, or a new one only smaller ones, and its
// producer does not know.
var errLimitChanged = errors.New("the topics' max.message.bytes has changed")

// errStays ends the pass of a shard of an open segment whose trouble nothing can be done about yet: damage, or a topic
// without an encoder.
var errStays = errors.New("the trouble stays")

// run sends the batches of the shard, in order. What fails is tried again for ever: the position is unchanged, so nothing
// is skipped (I8), and the other shards go on.
func (s *shardPass) run(ctx context.Context) error {
	began := s.begin()
	if err := s.retry(ctx, s.p, func(ctx context.Context) error { return s.r.Poll(ctx, s.m.Finalized) }); err != nil {
		return err
	}
	s.left.set(s.shard, s.r.Ahead()) // also of a shard whose first block is long in coming
	for {
		b := s.pool.get(s.shard)
		end, err := s.next(ctx, b)
		if err != nil || end {
			return err
		}
		b.reading = since(began)
		if err := s.encode(ctx, b); err != nil {
			return err
		}
		if err := s.send(ctx, b); err != nil {
			return err
		}
		began = s.begin()
	}
}

// next fills b with the next block, or with what is left out for damage.
func (s *shardPass) next(ctx context.Context, b *batch) (end bool, err error) {
	stays := false
	err = s.retry(ctx, s.p, func(ctx context.Context) error {
		err := s.r.Next(ctx, &b.events)
		if end = errors.Is(err, io.EOF); end {
			return nil
		}
		var d *source.DamageError
		switch {
		case !errors.As(err, &d):
			return err
		case !s.confirmed(d):
			return s.advise(d)
		}
		err = s.leaveOut(ctx, b, d)
		if stays = errors.As(err, &d) && !s.m.Finalized && !s.Once; stays {
			s.Observer.Failed(s.p, err)
			return nil
		}
		return err
	})
	if err == nil && stays {
		err = errStays
	}
	return end, err
}

// confirmed reports whether d has shown often enough to do about it what the settings say.
func (s *shardPass) confirmed(d *source.DamageError) bool {
	if text := d.Error(); text != s.damage {
		s.damage, s.attempts, s.sent = text, 0, 0
	}
	s.attempts++
	return s.attempts >= damageAttempts
}

// encode makes records of b. An event that can't be encoded is not skipped: the shard stays here, and says so, unless
// there is a dead-letter topic.
func (s *shardPass) encode(ctx context.Context, b *batch) error {
	changed, stays, pieces := false, false, len(b.dead)
	attempts := 0
	err := s.retry(ctx, s.p, func(ctx context.Context) error {
		b.dead = b.dead[:pieces] // what an attempt before found comes again
		err := b.encode(ctx, s.worker, s.m)
		if changed = errors.Is(err, errLimitChanged); changed {
			return nil
		}
		var missing *encoderError
		if errors.As(err, &missing) && !permanent(err) {
			attempts++
			if stays = attempts >= damageAttempts && !s.m.Finalized && !s.Once; stays {
				s.Observer.Failed(s.p, err)
				return nil
			}
		}
		var large *TooLargeError
		if errors.As(err, &large) {
			limit, lerr := s.messageLimit(ctx)
			if changed = lerr == nil && limit != s.limit; changed {
				return nil
			}
		}
		return err
	})
	switch {
	case changed:
		return errLimitChanged
	case stays:
		return errStays // the other shards of the lease go on, and this one with the next pass
	}
	return err
}

func (s *shardPass) send(ctx context.Context, b *batch) error {
	b.left = s.r.Ahead()
	if err := s.memory.acquire(ctx, b); err != nil {
		return err
	}
	select {
	case s.out <- b:
		return nil
	case <-ctx.Done():
		s.memory.release(b.held)
		return ctx.Err()
	}
}
