package pipeline

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"blobfeed/internal/crash"
	"blobfeed/internal/pause"
	"blobfeed/source"
)

// Lookahead reads small finalized segments before their turn, several at a time: each would otherwise cost the round
// trips of its manifest, listings and chunks, one after the other. It returns them in the feed's order, and ends before
// the first that is open, large or unreadable: that one is left to the passes, which know how to report it.
type Lookahead struct {
	p      *Pipeline
	After  source.Segment // the next one is the segment after this
	cancel context.CancelFunc
	out    chan *Small
	first  *Small      // taken from out, to be looked at
	gate   *pause.Gate // for requests, which the service may have enough of
	share  *share      // I9: of the memory for what is read ahead

	listed  atomic.Pointer[source.Segment] // the last one before which all are listed
	reading atomic.Int32                   // segments, for tests
}

// Small is a finalized segment that is read whole.
type Small struct {
	Manifest source.Manifest
	Size     int64    // of its chunks
	Blocks   []*Block // by shard, and in its order; there are none before EncodeWhole

	ahead   []readBlock           // what Blocks are made of
	readers []*source.ShardReader // nil once it is read
	lacks   []string              // what may be missing, by shard
	held    int64                 // of the memory
	listed  chan struct{}         // closed when Manifest, Size and readers are set, or err
	read    chan struct{}         // closed when the blocks are there, or err
	err     error
}

// readBlock is a block of a chunk that is not encoded yet. It holds nothing but what was read (I9): most of what a
// Block holds is room for its records.
type readBlock struct {
	shard   int
	events  source.Batch
	reading Span
}

var errNotSmall = errors.New("the segment is open or large")

// Lookahead starts reading the segments after one, until ctx ends or Stop is called.
func (p *Pipeline) Lookahead(ctx context.Context, after source.Segment) *Lookahead {
	ctx, cancel := context.WithCancel(ctx)
	a := &Lookahead{
		p: p, After: after, cancel: cancel, out: make(chan *Small, p.set.BundleReaders),
		gate: pause.NewGate(minRequests, maxRequests), share: p.memory.ahead.join(),
	}
	listing, ready := make(chan *Small, p.set.BundleReaders), make(chan *Small, p.set.BundleReaders)
	walking, enough := context.WithCancel(ctx)
	crash.Go(ctx, "feed", func() { a.walk(walking, listing) })
	crash.Go(ctx, "feed", func() { a.inOrder(walking, listing, ready) })
	crash.Go(ctx, "feed", func() {
		defer enough()
		a.readAll(ctx, ready)
	})
	return a
}

// Stop gives up what is read ahead.
func (a *Lookahead) Stop() {
	a.cancel()
	a.p.memory.ahead.leave(a.share)
}

// request makes requests of the storage, one at a time, when it has not too many.
func (a *Lookahead) request(ctx context.Context, f func(context.Context) error) error {
	turn, err := a.gate.Enter(ctx)
	if err != nil {
		return err
	}
	var busy atomic.Bool
	defer func() { a.gate.Leave(turn, busy.Load()) }()
	return f(source.WithBusy(ctx, func() { busy.Store(true) }))
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

// inOrder passes on the segments that are listed, up to the first that is not small.
func (a *Lookahead) inOrder(ctx context.Context, listing <-chan *Small, ready chan<- *Small) {
	defer close(ready)
	for s := range listing {
		select {
		case <-s.listed:
		case <-ctx.Done():
			return
		}
		if s.err != nil {
			return
		}
		a.listed.Store(&s.Manifest.Segment)
		select {
		case ready <- s:
		case <-ctx.Done():
			return
		}
	}
}

// readAll reads the listed segments, in order.
func (a *Lookahead) readAll(ctx context.Context, ready <-chan *Small) {
	defer close(a.out)
	for s := range ready {
		// In order: the segment that waits for memory is the next to be delivered, so those that hold it are done
		// before.
		var err error
		if s.held, err = a.p.memory.ahead.acquire(ctx, a.share, s.guess()); err != nil {
			return
		}
		a.reading.Add(1)
		crash.Go(ctx, "feed", func() {
			defer a.reading.Add(-1)
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
func (a *Lookahead) list(ctx context.Context, s *Small) error {
	feed := a.p.set.Feed
	err := a.request(ctx, func(ctx context.Context) (err error) {
		s.Manifest, err = feed.Manifest(ctx, s.Manifest.Segment) // I7: the status first
		return err
	})
	if err != nil {
		return err
	}
	if !s.Manifest.Finalized {
		return errNotSmall
	}
	var g errgroup.Group
	for _, n := range s.Manifest.Shards {
		r := feed.Shard(s.Manifest, n, source.ShardPosition{})
		s.readers = append(s.readers, r)
		g.Go(crash.Try(ctx, "feed", func() error {
			return a.request(ctx, func(ctx context.Context) error { return r.Poll(ctx, true) })
		}))
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
	var memory, held atomic.Int64
	held.Store(segmentSize)
	for i, r := range s.readers {
		if r.Ahead() == 0 {
			continue
		}
		g.Go(crash.Try(ctx, "feed", func() error {
			return a.request(ctx, func(ctx context.Context) error {
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
					// I9: what is held was guessed from the chunks' sizes, and a compressed one need not show it.
					if memory.Add(int64(b.events.Memory)) > 4*s.Size+smallMemory {
						return errNotSmall
					}
					held.Add(int64(readSize(&b.events)))
					b.reading = Between(began, time.Now())
					shards[i] = append(shards[i], b)
				}
			})
		}))
	}
	err := g.Wait()
	for i, r := range s.readers {
		s.ahead, s.lacks = append(s.ahead, shards[i]...), append(s.lacks, r.Lacks())
	}
	s.readers = nil                                       // I9
	a.p.memory.ahead.resize(a.share, s.held, held.Load()) // the windows of the readers are gone
	s.held = held.Load()
	return err
}

// Peek returns the next segment, read, or nil if there is none. Done ends the wait.
func (a *Lookahead) Peek(done <-chan struct{}) *Small {
	defer a.gate.Waits(false)
	if a.first == nil {
		a.gate.Waits(len(a.out) == 0)
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
	default:
		a.gate.Waits(true)
		select {
		case <-a.first.read:
		case <-done:
			return nil
		}
	}
	if a.first.err != nil {
		return nil
	}
	return a.first
}

// Knows reports whether Peek has returned the segment that comes after seg.
func (a *Lookahead) Knows(seg source.Segment) bool { return a.first != nil && a.After == seg }

// Ahead returns the segment that comes after seg, and the last one of those behind it whose chunks are listed by now.
func (a *Lookahead) Ahead(seg source.Segment) (next, last source.Segment, ok bool) {
	if !a.Knows(seg) {
		return next, last, false
	}
	return a.first.Manifest.Segment, *a.listed.Load(), true
}

// Take removes the segment that Peek has returned, when it is encoded.
func (a *Lookahead) Take() {
	a.p.memory.ahead.release(a.share, a.first.held)
	a.After = a.first.Manifest.Segment
	a.first = nil
}

// ErrFull says that the memory has no room for another segment.
var ErrFull = errors.New("the memory of blocks is in use")

// EncodeWhole makes the records of a segment, before the first of them is written: a segment is in a bundle whole, or
// not at all. What can't be encoded stays as it was read. The first segment of a bundle waits for memory; for another
// one there is ErrFull: what the bundle holds is free only behind its commit.
func (p *Pipeline) EncodeWhole(ctx context.Context, d *Pass, s *Small, first bool) (err error) {
	held, err := p.memory.reserve(ctx, s.room(), first)
	if err != nil {
		return err
	}
	var size int64
	for i := range s.ahead {
		r := &s.ahead[i]
		b := p.pool.get(r.shard)
		b.events, b.Reading = r.events, r.reading
		s.Blocks = append(s.Blocks, b)
		err = p.encode(ctx, d, b)
		b.dropEvents() // I9: a bundle holds what it writes, and not also what was read
		b.Memory = int64(b.footprint())
		if size += b.Memory; err == nil && (b.Counts.Dead > 0 || size > p.memory.limit) {
			err = errNotSmall
		}
		if err != nil {
			break
		}
	}
	p.memory.resize(p.memory.share, held, size)
	if err != nil {
		p.Drop(s)
		return err
	}
	for i := range s.ahead {
		p.pool.keepEvents(s.ahead[i].events.Events)
	}
	s.ahead = nil
	for i, lacks := range s.lacks {
		p.warnOfLack(d, s.Manifest.Shards[i], lacks)
	}
	return nil
}

// Drop gives up the blocks of a segment that were not written.
func (p *Pipeline) Drop(s *Small) {
	p.Reuse(slices.DeleteFunc(s.Blocks, func(b *Block) bool { return b == nil })...)
	s.Blocks = nil
}
