package feedsim

import (
	"context"
	"errors"
	"fmt"
)

// Append adds n events to the open segment, as whole blocks, and calls emit for each as it is made. Emit may be nil.
// When Append returns, all of them are in the sink, but for those of late shards.
func (f *Feed) Append(ctx context.Context, n int, emit func(Expected)) error {
	switch {
	case !f.open:
		return ErrNotOpen
	case len(f.current.shards) == 0:
		return fmt.Errorf("appending to segment %s: it is one without shards", f.current.name)
	case f.current.events+int64(n) > f.current.clock.limit:
		return fmt.Errorf("appending to segment %s: its interval is full", f.current.name)
	}
	for range n {
		s, c, b := f.draw()
		f.fill(&f.event, c, b)
		if err := f.put(ctx, s, emit); err != nil {
			return err
		}
	}
	return f.flushAll(ctx)
}

// put adds f.event to its shard, twice if it is time for that, and writes the shard's blocks if enough of them wait.
func (f *Feed) put(ctx context.Context, s *shard, emit func(Expected)) error {
	err := f.add(s, emit)
	if every := int64(f.spec.TwiceEvery); err == nil && every > 0 && f.sum.Events%every == 0 {
		f.sum.Events++
		err = f.add(s, emit)
	}
	if err != nil || len(s.buf) < flushAt || s.inBlock() {
		return err
	}
	return f.flush(ctx, s)
}

// flushAll ends the blocks of all shards and writes what waits in memory.
func (f *Feed) flushAll(ctx context.Context) error {
	for _, s := range f.current.shards {
		if err := f.cut(s); err != nil {
			return err
		}
		if err := f.flush(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// shardOf returns the shard of a blob. The blob stays in it for the segment; the segment's seed moves it in the next
// one.
func (f *Feed) shardOf(b *blob) *shard {
	shards := f.current.shards
	return shards[scramble(uint64(b.hash)^f.current.seed)%uint64(len(shards))]
}

// draw chooses what happens next, to which blob and so in which shard.
func (f *Feed) draw() (*shard, change, *blob) {
	shards := f.current.shards
	c := f.picker.pick(f.rng)
	if c == control {
		return shards[f.rng.IntN(len(shards))], c, nil
	}
	hot := f.spec.HotShare > 0 && f.rng.Float64() < f.spec.HotShare
	blobs := f.spec.Blobs
	if hot {
		blobs = min(hotBlobs, blobs)
	}
	b := f.blobs.at(f.rng.IntN(blobs))
	s := f.shardOf(b)
	c = b.next(c, s.version.number, f.rng)
	if tiers := len(s.version.tiers); c == tier || c == async {
		to := uint8(1 + f.rng.IntN(tiers-1))
		f.event.tier = to
		if c == tier {
			f.event.tier, b.tier = b.tier, to
		}
	}
	return s, c, b
}

const hotBlobs = 10

// add writes f.event into its shard's block.
func (f *Feed) add(s *shard, emit func(Expected)) error {
	f.head(s)
	if !s.inBlock() {
		s.startBlock(f.spec.Deflate)
	}
	if emit != nil {
		emit(f.announce(&f.event, s, s.size, s.count))
	}
	if f.spec.Deflate {
		s.raw = f.append(s.raw, s.version, &f.event)
	} else {
		s.buf = f.append(s.buf, s.version, &f.event)
	}
	s.count++
	f.count()
	if s.count == f.spec.BlockEvents {
		return f.cut(s)
	}
	return nil
}

func (f *Feed) count() {
	switch c := of[f.event.change]; {
	case f.event.change == control:
		f.sum.Controls++
	case c.delete:
		f.sum.Deletes++
		fallthrough
	case c.state:
		f.sum.States++
	}
}

// flush writes what waits in memory: whole blocks only.
func (f *Feed) flush(ctx context.Context, s *shard) error {
	if len(s.buf) == 0 || s.late {
		return nil
	}
	if s.inBlock() {
		return errors.New("flushing half a block") // never: callers cut
	}
	parts := [][]byte{s.buf}
	if f.spec.TornAppends {
		at := 1 + f.tears.IntN(len(s.buf)-1)
		parts = [][]byte{s.buf[:at], s.buf[at:]}
	}
	for _, p := range parts {
		if err := f.sink.Append(ctx, s.path(), p); err != nil {
			return err
		}
	}
	f.sum.Bytes += int64(len(s.buf))
	s.buf = s.buf[:0]
	return nil
}
