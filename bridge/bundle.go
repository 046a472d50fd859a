package bridge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"blobfeed/bridge/pipeline"
	"blobfeed/envelope"
	"blobfeed/internal/catalog"
	"blobfeed/internal/crash"
	"blobfeed/internal/history"
	"blobfeed/offsets"
	"blobfeed/source"
)

// Small finalized segments are delivered in bundles. The barrier takes two transactions of each segment, which is
// nothing for an hour's events and nearly all of the time for twenty of them. So the owner of lease 0 delivers a run
// of such segments by itself: their records, the markers after each, and the frontier behind the last, in one
// transaction.
//
// Meanwhile the frontier names no current segment, so no other lease writes (I4). What the other leases wrote before
// belongs to complete segments, as their committed cursors say. A crash leaves nothing behind: the next owner starts at
// the frontier again. The cursors of the leases stay where they are, in segments that are over.

// bundler makes the bundles. It belongs to the worker's goroutine.
type bundler struct {
	t         *tenure
	rules     *rules
	lookahead *pipeline.Lookahead // nil: nothing is read ahead
	bundle    *bundle             // read and encoded, not written yet; nil: none is
	early     *early              // at the segments behind the bundle that is being committed; nil: there is none
}

// bundle is a run of small segments, read and encoded.
type bundle struct {
	segments []gathered
	follows  *offsets.Frontier // which it follows
	frontier offsets.Frontier  // behind the last segment
}

// gathered is a segment of a bundle.
type gathered struct {
	small    *pipeline.Small
	resolved envelope.Timestamp // by the marker behind it; zero: none is written
	topics   map[string]int32   // which get the marker
	own      envelope.Timestamp // what it resolves by itself
	found    []string           // of topics, those that get a marker for that
}

// marks reports whether a marker is behind the last segment.
func (b *bundle) marks() bool {
	return b.segments[len(b.segments)-1].resolved != (envelope.Timestamp{})
}

// ahead returns what is read ahead of the segment after one.
func (b *bundler) ahead(after source.Segment) *pipeline.Lookahead {
	if b.lookahead != nil && b.lookahead.After != after {
		b.stop()
	}
	if b.lookahead == nil {
		b.lookahead = b.t.instance.pipe.Lookahead(b.t.work, after)
	}
	return b.lookahead
}

// stop drops what was read ahead.
func (b *bundler) stop() {
	if b.lookahead != nil {
		b.lookahead.Stop()
		b.early = nil // which is about that listing
		b.lookahead = nil
	}
}

// close gives up the bundle, and what was read ahead.
func (b *bundler) close() { b.drop(); b.stop() }

// starts reports whether a bundle starts after the segment.
func (b *bundler) starts(after source.Segment) bool {
	if b.t.opts.Pace.BundleBytes == 0 {
		return false
	}
	s := b.ahead(after).Peek(b.t.work.Done())
	return s != nil && !b.t.opts.end().Within(s.Manifest)
}

// readsAhead reports whether the segments after f.Completed were listed to be read ahead.
func (b *bundler) readsAhead(f *offsets.Frontier) bool {
	return b.bundle != nil || b.lookahead != nil && b.lookahead.After == f.Completed
}

// gather reads and encodes the small segments after f.Completed, as many as fit into a transaction; nil if the next one
// is not for a bundle. A bundle stays until it is written, so that a look that fails behind it does not repeat it.
func (b *bundler) gather(f *offsets.Frontier) *bundle {
	if b.bundle == nil || b.bundle.follows != b.t.epoch.frontier {
		b.drop()
		if b.starts(f.Completed) {
			b.bundle = b.read(f)
		}
	}
	return b.bundle
}

// read reads and encodes a bundle.
func (b *bundler) read(f *offsets.Frontier) *bundle {
	t, opts := b.t, b.t.opts
	ahead := b.ahead(f.Completed)
	due, cancel := context.WithTimeout(t.work, t.out.interval(opts.Pace.CommitInterval))
	defer cancel()
	// I9: what is read ahead has a bound of its own, and its records have this one: they may be larger than events.
	run := &bundle{follows: t.epoch.frontier, frontier: *f}
	has := txn{began: time.Now()}
	var size int64
	pass := t.epoch.describe(source.Manifest{}, nil)
	for {
		s := ahead.Peek(due.Done())
		if s == nil || opts.end().Within(s.Manifest) || size > 0 && size+s.Size > opts.Pace.BundleBytes ||
			has.full(opts.Pace.TxnRecords, opts.Pace.TxnBytes, minTxnInterval) {
			break
		}
		pass.Manifest = s.Manifest
		if t.instance.pipe.EncodeWhole(t.work, pass, s, len(run.segments) == 0) != nil {
			break // it is in the next bundle, or the leases meet it again, and report it
		}
		ahead.Take()
		size += max(s.Size, 1)
		for _, block := range s.Blocks {
			has.include(block)
			run.frontier.Adopt(catalog.Pins(block.New)) // I6: also a topic that is new gets the marker
		}
		g := gathered{small: s, topics: run.frontier.Topics}
		if at := b.rules.promise(s.Manifest, pass.Promised, false); !b.rules.barred(&run.frontier, at) {
			g.resolved, pass.Promised = at, at
		}
		g.own = b.rules.own(&run.frontier, s.Manifest, false)
		b.rules.passes(&run.frontier, s.Manifest, g.resolved, g.own)
		g.found = run.frontier.Found()
		run.segments = append(run.segments, g)
	}
	if len(run.segments) == 0 {
		return nil
	}
	return run
}

// drop gives up a bundle that is not written, if there is one.
func (b *bundler) drop() {
	if b.bundle == nil {
		return
	}
	for _, g := range b.bundle.segments {
		b.t.instance.pipe.Drop(g.small)
	}
	b.bundle = nil
}

// around looks whether retention has removed what was read ahead, or what is before it, and whether the feed ends
// with it. The requests are side by side: storage may be 60 ms away, and a bundle waits for each of them.
func (b *bundler) around(f *offsets.Frontier, run *bundle) (lost *history.GapError, last bool, err error) {
	var looks errgroup.Group
	var gone bool
	ctx := b.t.work
	if !b.early.clears(f, run) {
		looks.Go(crash.Try(ctx, "look", func() error {
			// I8: retention removes the oldest segments first. So while the first one exists, no listing after it has
			// missed a segment.
			_, err := b.t.opts.Feed.Source.Manifest(b.t.work, run.segments[0].small.Manifest.Segment)
			if gone = errors.Is(err, source.ErrNotFound); gone || err == nil {
				return nil
			}
			return looked(fmt.Errorf("looking whether retention removed what was read ahead: %w", err))
		}))
		looks.Go(crash.Try(ctx, "look", func() (err error) {
			lost, err = b.t.lostSince(f)
			return err
		}))
	}
	if b.lookahead == nil || !b.lookahead.Knows(run.frontier.Completed) {
		looks.Go(crash.Try(ctx, "look", func() error {
			_, more, err := b.t.nextSegment(run.frontier.Completed)
			last = !more
			return err
		}))
	}
	err = looks.Wait()
	if gone {
		b.close()
		err = cmp.Or(err, errPast) // no failure: the next look finds what is lost
	}
	return lost, last, err
}

// early is the look of bundler.around, made for the next bundle while one is committed: storage may be 60 ms away, and
// no bundle waits for it then. It holds for segments whose chunks were listed before.
type early struct {
	after, first, last source.Segment
	over               chan struct{}
	clear              bool // nothing is lost; else the look is repeated in its turn
}

// lookEarly starts to look around the segments behind f, which is about to be committed.
func (b *bundler) lookEarly(f offsets.Frontier) {
	b.early = nil
	if b.lookahead == nil {
		return
	}
	first, last, ok := b.lookahead.Ahead(f.Completed)
	if !ok {
		return
	}
	e := &early{after: f.Completed, first: first, last: last, over: make(chan struct{})}
	b.early = e
	ctx, h, feed := b.t.work, b.t.instance.history, b.t.opts.Feed.Source
	start := b.t.epoch.filter.From // the commit changes the epoch
	crash.Go(ctx, "look", func() {
		defer close(e.over)
		var looks errgroup.Group
		looks.Go(crash.Try(ctx, "look", func() error {
			_, err := feed.Manifest(ctx, first)
			return err
		}))
		looks.Go(crash.Try(ctx, "look", func() error { return h.LostAfter(ctx, &f, start) }))
		e.clear = looks.Wait() == nil
	})
}

// clears reports whether the look has found that nothing is lost between f and the end of b.
func (e *early) clears(f *offsets.Frontier, b *bundle) bool {
	if e == nil || e.after != f.Completed || e.first != b.segments[0].small.Manifest.Segment ||
		b.frontier.Completed.Compare(e.last) > 0 {
		return false
	}
	<-e.over
	return e.clear
}
