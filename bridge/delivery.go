package bridge

import (
	"cmp"
	"context"
	"errors"
	"time"

	"blobfeed/bridge/pipeline"
	"blobfeed/internal/history"
	"blobfeed/internal/testing/mutation"
	"blobfeed/resolved"
	"blobfeed/source"
)

// delivery is the work of a tenure on the current segment, pass after pass: a pass reads every shard of the lease to
// the end of a listing. It belongs to the worker's goroutine.
type delivery struct {
	t       *tenure
	m       source.Manifest // as of the last pass
	shards  []int           // of this lease
	readers map[int]*source.ShardReader
	listed  time.Time     // when the last pass began
	waited  time.Duration // since then, without another pass
	wait    time.Duration // before the next look at an open segment
	due     time.Time     // for it
	quiet   bool          // its time is over, and the last pass found nothing
	stays   bool          // a shard of it could not be read to its end
}

// rests reports whether an open segment needs no other pass now. Events come in the time of their segment or soon
// after, but an idle account's last segment stays open for days. Its end shows in the manifest, so the shards need no
// listing each time. The clock decides only how often to look.
func (d *delivery) rests(m source.Manifest) bool {
	opts := d.t.opts
	changed := m.Finalized || len(m.Shards) != len(d.m.Shards)
	d.waited += d.wait
	if changed || !d.quiet || d.waited >= opts.Pace.QuietInterval {
		return false
	}
	d.wait = opts.Pace.PollInterval
	d.due = time.Now().Add(d.wait)
	return true
}

// rest is what is left to do between two passes.
func (d *delivery) rest() todo {
	if d.stays {
		return todoStay
	}
	return todoWait
}

// pass reads every shard to the end of a listing taken after the manifest was read, and commits what it finds.
func (d *delivery) pass(do task) error {
	t := d.t
	ctx, done := t.during(do)
	defer done()
	for _, shard := range d.shards {
		if d.readers[shard] == nil { // also one that appears late in an open segment
			d.readers[shard] = t.opts.Feed.Source.Shard(d.m, shard, t.cursor.At(d.m.Segment, shard))
		}
	}
	read := t.cursor.Counts.Read
	d.listed, d.waited = t.opts.Now(), 0
	stays, err := d.read(ctx)
	if err != nil || d.m.Finalized {
		return err
	}
	for _, shard := range d.shards {
		// I1: events that a shard has read but not delivered, because their topic has no encoder, are read again.
		if stays && d.readers[shard].Position() != t.cursor.At(d.m.Segment, shard) {
			delete(d.readers, shard)
		}
	}
	t.instance.pipe.DropBuffers()
	poke(t.instance.poke)
	d.rested(t.cursor.Counts.Read > read, stays)
	return nil
}

// rested notes what the pass over an open segment has found, and when to look again.
func (d *delivery) rested(moved, stays bool) {
	opts := d.t.opts
	d.stays = stays
	d.quiet = !moved && !stays && opts.Now().After(d.m.Begin.Add(d.m.Interval+resolved.Slack))
	d.wait = history.NextLook(opts.Pace.PollInterval, d.late(moved))
	d.due = time.Now().Add(d.wait)
}

// late returns how long after an append the pass that is over began to read, or -1. Only a lease with one shard asks:
// several are appended to at times of their own.
func (d *delivery) late(moved bool) time.Duration {
	if !moved || len(d.shards) != 1 {
		return -1
	}
	return d.listed.Sub(d.readers[d.shards[0]].Modified())
}

// read puts the records of all shards into transactions. Stays reports that a shard of an open segment stays where it
// is.
func (d *delivery) read(ctx context.Context) (stays bool, _ error) {
	t := d.t
	failed := func(err error) { t.opts.Observer.Failed(t.p, err) }
	run := t.instance.pipe.Start(ctx, t.epoch.describe(d.m, &t.out.backlog), d.shards, d.readers, failed)
	defer run.Close() // the readers must be gone before the lease is
	t.out.txn.reset(d.m.Segment)
	if err := t.out.take(run.Blocks); err != nil {
		return false, err
	}
	return run.Stays(), d.endPass(run)
}

// endPass commits what the pass left open. If the segment is finalized, and every shard was read to the end of a
// listing made after that was known (I7), the cursor says that this lease is done.
func (d *delivery) endPass(run *pipeline.Run) error {
	err, txn := run.Err(), &d.t.out.txn
	if err == nil && d.m.Finalized {
		if believed, err := d.believed(); !believed {
			return err // if there is none, the next look finds the segment gone
		}
	}
	switch {
	case err != nil:
	case d.m.Finalized:
		if _, err := d.t.out.open(); err != nil {
			return err
		}
		d.t.cursor.Finish(d.m.Segment)
	case !run.Stays():
		txn.drained = true
		for _, shard := range d.shards {
			if at := d.readers[shard].Modified(); at.After(txn.published) {
				txn.published = at
			}
		}
	}
	if errors.Is(err, errPast) && !errors.Is(err, errPause) { // I11: another segment may be the current one
		return err
	}
	// Pauses may come more often than a transaction is due. Nobody lists before this lease has committed that it holds
	// (I4), so what is open counts.
	return cmp.Or(d.t.out.commit(), err) // behind a failed commit, the next tenure meets the same again
}

// believed reports whether the listings of the shards of a finalized segment can be believed. A listing without chunks
// may be that of a shard without events, or of a shard that retention has removed since the manifest was read (I8). If
// the manifest still exists, the shard has no events. Reading the manifest again may take long, so believed commits the
// open transaction first.
func (d *delivery) believed() (bool, error) {
	now := time.Now()
	for _, shard := range d.shards {
		if d.readers[shard].Position() == (source.ShardPosition{}) {
			if err := d.t.out.commit(); err != nil {
				return false, err
			}
			return d.t.isThere(d.m.Segment, now)
		}
	}
	return true, nil
}

// lose records that retention has removed events of the current segment that this lease has not delivered. Only the
// lease's owner may say so, and only behind a fence that is later than the finding: another owner may have delivered
// the events that are gone now (docs/project/protocol.md, Lost history). A gap that is recorded needs no other fence:
// had there been another owner, its fence would refuse the cursor.
func (d *delivery) lose(gap *history.GapError) error {
	if !d.t.opts.Feed.SkipGaps {
		return d.t.doubt(gap)
	}
	// The loss is recorded like a delivery: the cursor is done, with a gap, and the barrier records the gap in the
	// frontier. The frontier does not jump, because other leases may still deliver events of the segment (I4, I11).
	mutation.Crash("gap", "found")
	d.t.out.txn.reset(gap.At)
	if _, err := d.t.out.open(); err != nil {
		return err
	}
	d.t.cursor.Finish(gap.At)
	d.t.cursor.Gap = true
	if err := d.t.out.commit(); err != nil {
		return err
	}
	d.t.opts.reportLoss(d.t.p, gap)
	return nil
}
