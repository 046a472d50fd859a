package bridge

import (
	"context"
	"errors"
	"io"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"blobfeed/source"
)

// ahead reads small finalized segments before their turn, several at a time: each would otherwise cost the round trips of
// its manifest, listings and chunks, one after the other. It gives them in the feed's order, and ends before the first that
// is open, large or unreadable: that one is for the leases, who know what to do about it.
type ahead struct {
	after  source.Segment // what comes next is the segment after this one
	out    chan *small
	first  *small // taken from out, to be looked at
	memory *semaphore.Weighted
	cancel context.CancelFunc
}

// small is a finalized segment that is read whole.
type small struct {
	m       source.Manifest
	readers []*source.ShardReader
	size    int64         // of its chunks
	listed  chan struct{} // closed when the fields above are set, or err

	batches []*batch      // by shard, and in its order
	read    chan struct{} // closed when the batches are there, or err

	err error
}

// smallMemory is what a small segment's events may take, beside four times the size of its chunks: real ones take two.
const smallMemory = 256 << 10

var errNotSmall = errors.New("the segment is open or large")

// lookAhead begins to read the segments after one, until it is stopped.
func (w *worker) lookAhead(after source.Segment) *ahead {
	ctx, cancel := context.WithCancel(w.work)
	a := &ahead{
		after: after, out: make(chan *small, w.BundleReaders), cancel: cancel,
		memory: semaphore.NewWeighted(2 * w.BundleBytes), // of a bundle, and of the next, which is read while that is committed
	}
	listing := make(chan *small, w.BundleReaders)
	walking, enough := context.WithCancel(ctx)
	go func() {
		defer close(listing)
		for seg, err := range w.Feed.Segments(walking, after) {
			if err != nil {
				return
			}
			s := &small{m: source.Manifest{Segment: seg}, listed: make(chan struct{}), read: make(chan struct{})}
			select {
			case listing <- s:
			case <-walking.Done():
				return
			}
			go w.list(walking, s)
		}
	}()
	go func() {
		defer close(a.out)
		defer enough()
		for s := range listing {
			select {
			case <-s.listed:
			case <-ctx.Done():
				return
			}
			// In order: who waits for memory is the next to be delivered, so those that hold it are done before.
			if s.err != nil || a.memory.Acquire(ctx, s.size) != nil {
				return
			}
			go w.readWhole(ctx, s)
			select {
			case a.out <- s:
			case <-ctx.Done():
				return
			}
		}
	}()
	return a
}

// list finds out whether a segment is one for a bundle.
func (w *worker) list(ctx context.Context, s *small) {
	defer close(s.listed)
	if s.m, s.err = w.Feed.Manifest(ctx, s.m.Segment); s.err != nil { // I7: the status first
		return
	}
	if !s.m.Finalized {
		s.err = errNotSmall
		return
	}
	var g errgroup.Group
	for _, shard := range s.m.Shards {
		r := w.Feed.Shard(s.m, shard, source.ShardPosition{})
		s.readers = append(s.readers, r)
		g.Go(func() error { return r.Poll(ctx, true) })
	}
	if s.err = g.Wait(); s.err != nil {
		return
	}
	for _, r := range s.readers {
		s.size += r.Ahead()
	}
	if s.size > w.BundleBytes {
		s.err = errNotSmall
	}
}

// readWhole reads every shard to the end of its listing.
func (w *worker) readWhole(ctx context.Context, s *small) {
	defer close(s.read)
	shards := make([][]*batch, len(s.readers))
	var g errgroup.Group
	var memory atomic.Int64
	for i, r := range s.readers {
		g.Go(func() error {
			for {
				began := w.begin()
				b := w.pool.get(s.m.Shards[i])
				err := r.Next(ctx, &b.events)
				if errors.Is(err, io.EOF) {
					return nil
				}
				if err != nil {
					return err
				}
				// I9: what is held is counted by the chunks' sizes, which a compressed one need not show.
				if memory.Add(int64(b.events.Memory)) > 4*s.size+smallMemory {
					return errNotSmall
				}
				b.reading = since(began)
				shards[i] = append(shards[i], b)
			}
		})
	}
	s.err = g.Wait()
	for _, batches := range shards {
		s.batches = append(s.batches, batches...)
	}
}

// peek returns the next segment, read, or nil if there is none. Done ends the wait.
func (a *ahead) peek(done <-chan struct{}) *small {
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

// take removes the segment that peek has returned. Its memory is free again when the caller says so.
func (a *ahead) take() {
	a.after = a.first.m.Segment
	a.first = nil
}
