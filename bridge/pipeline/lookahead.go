package pipeline

import (
	"context"
	"errors"
	"io"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"blobfeed/internal/crash"
	"blobfeed/source"
)

// Lookahead reads small finalized segments before their turn, several at a time: each would otherwise cost the round
// trips of its manifest, listings and chunks, one after the other. It returns them in the feed's order, and ends before
// the first that is open, large or unreadable: that one is left to the passes, which know how to report it.
type Lookahead struct {
	p      *Pipeline
	After  source.Segment // the next one is the segment after this
	Stop   context.CancelFunc
	out    chan *Small
	first  *Small              // taken from out, to be looked at
	memory *semaphore.Weighted // I9: of a bundle, and of the next, which is read while that one is committed
}

// Small is a finalized segment that is read whole.
type Small struct {
	Manifest source.Manifest
	Size     int64    // of its chunks
	Blocks   []*Block // by shard, and in its order; there are none before EncodeWhole

	ahead   []readBlock // what Blocks are made of
	readers []*source.ShardReader
	listed  chan struct{} // closed when Manifest, Size and readers are set, or err
	read    chan struct{} // closed when the blocks are there, or err
	err     error
}

// readBlock is a block of a chunk that is not encoded yet. It holds nothing but what was read (I9): most of what a
// Block holds is room for its records.
type readBlock struct {
	shard   int
	events  source.Batch
	reading Step
}

var errNotSmall = errors.New("the segment is open or large")

// Lookahead starts reading the segments after one, until ctx ends or Stop is called.
func (p *Pipeline) Lookahead(ctx context.Context, after source.Segment) *Lookahead {
	ctx, cancel := context.WithCancel(ctx)
	a := &Lookahead{
		p: p, After: after, Stop: cancel, out: make(chan *Small, p.set.BundleReaders),
		memory: semaphore.NewWeighted(2 * p.set.BundleBytes),
	}
	listing := make(chan *Small, p.set.BundleReaders)
	walking, enough := context.WithCancel(ctx)
	crash.Go(ctx, "feed", func() { a.walk(walking, listing) })
	crash.Go(ctx, "feed", func() {
		defer enough()
		a.readAll(ctx, listing)
	})
	return a
}

// walk lists the segments, several at a time.
func (a *Lookahead) walk(ctx context.Context, listing chan<- *Small) {
	defer close(listing)
	for seg, err := range a.p.set.Feed.Segments(ctx, a.After) {
		if err != nil {
			return
		}
		s := &Small{Manifest: source.Manifest{Segment: seg}, listed: make(chan struct{}), read: make(chan struct{})}
		select {
		case listing <- s:
		case <-ctx.Done():
			return
		}
		crash.Go(ctx, "feed", func() {
			defer close(s.listed)
			s.err = crash.Try(ctx, "feed", func() error { return a.list(ctx, s) })() // I8: a panic is no empty segment
		})
	}
}

// readAll reads the listed segments, in order.
func (a *Lookahead) readAll(ctx context.Context, listing <-chan *Small) {
	defer close(a.out)
	for s := range listing {
		select {
		case <-s.listed:
		case <-ctx.Done():
			return
		}
		// In order: the segment that waits for memory is the next to be delivered, so those that hold it are done
		// before.
		if s.err != nil || a.memory.Acquire(ctx, s.Size) != nil {
			return
		}
		crash.Go(ctx, "feed", func() {
			defer close(s.read)
			s.err = crash.Try(ctx, "feed", func() error { return a.readWhole(ctx, s) })()
		})
		select {
		case a.out <- s:
		case <-ctx.Done():
			return
		}
	}
}

// list finds out whether a segment is one for a bundle.
func (a *Lookahead) list(ctx context.Context, s *Small) (err error) {
	feed := a.p.set.Feed
	if s.Manifest, err = feed.Manifest(ctx, s.Manifest.Segment); err != nil { // I7: the status first
		return err
	}
	if !s.Manifest.Finalized {
		return errNotSmall
	}
	var g errgroup.Group
	for _, n := range s.Manifest.Shards {
		r := feed.Shard(s.Manifest, n, source.ShardPosition{})
		s.readers = append(s.readers, r)
		g.Go(crash.Try(ctx, "feed", func() error { return r.Poll(ctx, true) }))
	}
	if err := g.Wait(); err != nil {
		return err
	}
	for _, r := range s.readers {
		s.Size += r.Ahead()
	}
	if s.Size > a.p.set.BundleBytes {
		return errNotSmall
	}
	return nil
}

// readWhole reads every shard to the end of its listing.
func (a *Lookahead) readWhole(ctx context.Context, s *Small) error {
	shards := make([][]readBlock, len(s.readers))
	var g errgroup.Group
	var memory atomic.Int64
	for i, r := range s.readers {
		g.Go(crash.Try(ctx, "feed", func() error {
			for {
				began := time.Now()
				b := readBlock{shard: s.Manifest.Shards[i], events: source.Batch{Events: a.p.pool.takeEvents()}}
				err := r.Next(ctx, &b.events)
				if errors.Is(err, io.EOF) {
					a.p.pool.keepEvents(b.events.Events)
					return nil
				}
				if err != nil {
					return err
				}
				// I9: what is held is counted by the chunks' sizes, which a compressed one need not show.
				if memory.Add(int64(b.events.Memory)) > 4*s.Size+smallMemory {
					return errNotSmall
				}
				b.reading = Between(began, time.Now())
				shards[i] = append(shards[i], b)
			}
		}))
	}
	err := g.Wait()
	for _, blocks := range shards {
		s.ahead = append(s.ahead, blocks...)
	}
	return err
}

// Peek returns the next segment, read, or nil if there is none. Done ends the wait.
func (a *Lookahead) Peek(done <-chan struct{}) *Small {
	if a.first == nil {
		select {
		case s, ok := <-a.out:
			if !ok {
				return nil
			}
			a.first = s
		case <-done:
			return nil
		}
	}
	select {
	case <-a.first.read:
	case <-done:
		return nil
	}
	if a.first.err != nil {
		return nil
	}
	return a.first
}

// Knows reports whether Peek has returned the segment that comes after seg.
func (a *Lookahead) Knows(seg source.Segment) bool { return a.first != nil && a.After == seg }

// Take removes the segment that Peek has returned. Its memory is free again after Release.
func (a *Lookahead) Take() {
	a.After = a.first.Manifest.Segment
	a.first = nil
}

// Release gives back the memory of a segment that was taken.
func (a *Lookahead) Release(s *Small) { a.memory.Release(s.Size) }

// EncodeWhole makes the records of a segment, before the first of them is written: a segment is in a bundle whole, or
// not at all. What can't be encoded stays as it was read.
func (p *Pipeline) EncodeWhole(ctx context.Context, d *Pass, s *Small) (err error) {
	for i := range s.ahead {
		r := &s.ahead[i]
		b := p.pool.get(r.shard)
		b.events, b.Reading = r.events, r.reading
		s.Blocks = append(s.Blocks, b)
		if err = p.encode(ctx, d, b); err == nil && b.Counts.Dead > 0 {
			err = errNotSmall
		}
		if err != nil {
			break
		}
	}
	for _, b := range s.Blocks {
		events := b.takeEvents()
		if err == nil { // I9: until the commit, a bundle holds what it writes, and not also what was read
			p.pool.keepEvents(events)
		}
	}
	if err != nil {
		p.Reuse(s.Blocks...)
		s.Blocks = nil
		return err
	}
	s.ahead = nil
	for i, r := range s.readers {
		p.warnOfLack(d, s.Manifest.Shards[i], r)
	}
	return nil
}
