package bridge

import (
	"golang.org/x/sync/errgroup"

	"blobfeed/internal/crash"
	"blobfeed/offsets"
	"blobfeed/source"
)

// early is lookAround for the next bundle while one is committed: storage may be 60 ms away, and no bundle waits for it
// then. It holds for segments whose chunks were listed before.
type early struct {
	after, first, last source.Segment
	over               chan struct{}
	clear              bool // nothing is lost; else the look is repeated in its turn
}

// lookEarly starts to look around the segments behind f, which is about to be committed.
func (co *coordinator) lookEarly(f offsets.Frontier) {
	co.early = nil
	if co.lookahead == nil {
		return
	}
	first, last, ok := co.lookahead.Ahead(f.Completed)
	if !ok {
		return
	}
	e := &early{after: f.Completed, first: first, last: last, over: make(chan struct{})}
	co.early = e
	ctx, h, feed := co.t.work, co.t.instance.history, co.t.opts.Feed
	start := co.t.epoch.filter.From // the commit changes the epoch
	crash.Go(ctx, "look", func() {
		defer close(e.over)
		var looks errgroup.Group
		looks.Go(crash.Try(ctx, "look", func() error {
			_, err := feed.Manifest(ctx, first)
			return err
		}))
		looks.Go(crash.Try(ctx, "look", func() error { return h.LostBehind(ctx, &f, start) }))
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
