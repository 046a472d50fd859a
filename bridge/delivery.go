package bridge

import (
	"context"
	"errors"
	"time"

	"blobfeed/bridge/pipeline"
	"blobfeed/internal/mutation"
	"blobfeed/internal/pause"
	"blobfeed/resolved"
	"blobfeed/source"
)

// delivery is the work of a hold on the current segment. It belongs to the worker's goroutine.
type delivery struct {
	h       *hold
	basis   *basis
	w       *writer
	m       source.Manifest
	shards  []int     // of this lease
	listed  time.Time // when the last pass began
	readers map[int]*source.ShardReader
}

// deliver delivers the shards of this lease, pass after pass, until the segment is finalized and delivered, or the
// stop.
func (d *delivery) deliver() error {
	ctx, done := d.h.during(d.m.Segment)
	defer done()
	d.readers = map[int]*source.ShardReader{}
	d.w.backlog.Reset()
	for {
		for _, shard := range d.shards {
			if d.readers[shard] == nil { // also one that appears late in an open segment
				d.readers[shard] = d.h.opts.Feed.Shard(d.m, shard, d.h.cursor.At(d.m.Segment, shard))
			}
		}
		read := d.h.cursor.Counts.Read
		d.listed = d.h.opts.Now()
		stays, err := d.runPass(ctx)
		if err != nil || d.m.Finalized {
			return err
		}
		for _, shard := range d.shards {
			// I1: events that a shard has read but not delivered, because their topic has no encoder, are read again.
			if stays && d.readers[shard].Position() != d.h.cursor.At(d.m.Segment, shard) {
				delete(d.readers, shard)
			}
		}
		d.h.shared.pipe.DropBuffers()
		poke(d.h.shared.poke)
		if d.m, err = d.awaitMore(ctx, d.h.cursor.Counts.Read > read, stays); err != nil {
			return err
		}
		d.shards = d.h.shared.shardsOf(d.h.p, d.m)
	}
}

// awaitMore returns the manifest when it is time to list the shards of an open segment again.
//
// Events come in the time of their segment or soon after, but an idle account's last segment stays open for days. Its
// end shows in the manifest, so the shards need no listing each time. The clock decides only how often to look.
func (d *delivery) awaitMore(ctx context.Context, moved, stays bool) (source.Manifest, error) {
	opts := d.h.opts
	drained := func() error {
		if stays {
			return nil
		}
		opts.Observer.Active(d.h.p, Drained)
		return d.h.recovered()
	}
	if err := drained(); err != nil {
		return d.m, err
	}
	defer opts.Observer.Active(d.h.p, Working)
	quiet := !moved && !stays && opts.Now().After(d.m.Begin.Add(d.m.Interval+resolved.Slack))
	for waited, wait := time.Duration(0), nextLook(opts.PollInterval, d.late(moved)); ; wait = opts.PollInterval {
		if err := pause.For(ctx, wait); err != nil {
			return d.m, err
		}
		waited += wait
		next, err := d.h.manifest(ctx, d.m.Segment)
		changed := next.Finalized || len(next.Shards) != len(d.m.Shards)
		if err != nil || changed || !quiet || waited >= opts.QuietInterval {
			return next, err
		}
		if err := drained(); err != nil { // still, and what failed before succeeds
			return d.m, err
		}
	}
}

// late returns how long after an append the pass that is over began to read, or -1. Only a lease with one shard asks:
// several are appended to at times of their own.
func (d *delivery) late(moved bool) time.Duration {
	if !moved || len(d.shards) != 1 {
		return -1
	}
	return d.listed.Sub(d.readers[d.shards[0]].Modified())
}

// runPass reads every shard to the end of a listing taken after the manifest was read, and commits what it finds. Stays
// reports that a shard of an open segment stays where it is.
func (d *delivery) runPass(ctx context.Context) (stays bool, _ error) {
	h := d.h
	failed := func(err error) { h.opts.Observer.Failed(h.p, err) }
	run := h.shared.pipe.Start(ctx, d.basis.describe(d.m, &d.w.backlog), d.shards, d.readers, failed)
	defer run.Close() // the readers must be gone before the lease is
	d.w.txn.reset(d.m.Segment)
	if err := d.w.take(run.Blocks); err != nil {
		return false, err
	}
	return run.Stays(), d.endPass(run)
}

// endPass commits what the pass left open. If the segment is finalized, and every shard was read to the end of a
// listing made after that was known (I7), the cursor says that this lease is done.
func (d *delivery) endPass(run *pipeline.Run) error {
	err, txn := run.Err(), &d.w.txn
	if err == nil && d.m.Finalized {
		if believed, err := d.believed(); !believed {
			return err // if there is none, the next look finds the segment gone
		}
	}
	switch {
	case err != nil:
	case d.m.Finalized:
		if _, err := d.w.open(); err != nil {
			return err
		}
		d.h.cursor.Finish(d.m.Segment)
	case !run.Stays():
		txn.drained = true
		for _, shard := range d.shards {
			if at := d.readers[shard].Modified(); at.After(txn.published) {
				txn.published = at
			}
		}
	}
	if errors.Is(err, errPast) { // I11: what is open is not for the segment that is current now
		return err
	}
	return errors.Join(err, d.w.commit())
}

// believed reports whether the listings of the shards of a finalized segment can be believed. A listing without chunks
// may be that of a shard without events, or of a shard that retention has removed since the manifest was read (I8). If
// the manifest still exists, the shard has no events. Reading the manifest again may take long, so believed commits the
// open transaction first.
func (d *delivery) believed() (bool, error) {
	now := time.Now()
	for _, shard := range d.shards {
		if d.readers[shard].Position() == (source.ShardPosition{}) {
			if err := d.w.commit(); err != nil {
				return false, err
			}
			return d.h.isThere(d.m.Segment, now)
		}
	}
	return true, nil
}

// lose records that retention has removed events of the current segment that this lease has not delivered. Only the
// lease's owner may say so, and only behind a fence that is later than the finding: another owner may have delivered
// the events that are gone now (docs/protocol.md, Lost history).
func (d *delivery) lose(gap *GapError) error {
	if !d.h.opts.SkipGaps {
		return d.h.doubt(gap)
	}
	// The loss is recorded like a delivery: the cursor is done, with a gap, and the barrier records the gap in the
	// frontier. The frontier does not jump, because other leases may still deliver events of the segment (I4, I11).
	mutation.Crash("gap", "found")
	d.w.txn.reset(gap.At)
	if _, err := d.w.open(); err != nil {
		return err
	}
	d.h.cursor.Finish(gap.At)
	d.h.cursor.Gap = true
	if err := d.w.commit(); err != nil {
		return err
	}
	d.h.opts.reportLoss(d.h.p, gap)
	return nil
}
