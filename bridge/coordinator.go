package bridge

import (
	"time"

	"golang.org/x/sync/errgroup"

	"blobfeed/envelope"
	"blobfeed/internal/crash"
	"blobfeed/internal/history"
	"blobfeed/internal/testing/mutation"
	"blobfeed/offsets"
	"blobfeed/resolved"
	"blobfeed/source"
)

// coordinator looks after the frontier, while a tenure has lease 0. It belongs to the worker's goroutine. Each step has
// three parts:
//
//	look    reads what the step depends on: manifests, listings, partition counts, encoders (look.go)
//	decide  makes a change of the state and of what was read; it is pure (decide.go)
//	write   commits the change (change.go)
//
// A transaction is open in the last part only. So a look that fails leaves nothing behind: the loop reports it, and the
// coordinator looks again. And nothing that a change depends on is read while it is half written, but the ends of
// partitions (writer.endOffsets). Reading ahead, and bundler.lookEarly, are for the steps that follow.
type coordinator struct {
	t              *tenure
	rules          rules
	bundler        bundler
	counting       bool      // the speed of a catch-up is measured from an earlier frontier of this tenure
	lookedForDelay time.Time // see Overdue
}

func newCoordinator(t *tenure) *coordinator {
	co := &coordinator{t: t, rules: newRules(t.opts, t.instance.leases)}
	co.bundler = bundler{t: t, rules: &co.rules}
	return co
}

// stepFirst does what there is to do for the frontier, or else the task of lease 0.
func (co *coordinator) stepFirst(s *offsets.State) (todo, error) {
	if moved, err := co.step(s); moved || err != nil {
		return todoAgain, err
	}
	return co.t.step(s)
}

// step does what the coordinator has to do in state s, if anything: write the first frontier, repair what a paused
// owner wrote late, end a move, pay owed markers, take up a scan or turn its round, complete the current segment, or go
// to the next one.
func (co *coordinator) step(s *offsets.State) (moved bool, err error) {
	if s.Frontier == nil {
		return co.begin(s)
	}
	if after, ok := s.Regressed(); ok { // without transactions only: a former owner has written behind newer records
		co.t.opts.Log.Warn("a paused instance has written old records behind newer ones; delivering again from there",
			"after_segment", after, "at", s.Frontier.At())
		return true, co.t.out.write(&change{frontier: *s.Repair(after)})
	}
	f := *s.Frontier // what its fields point to may be in use: it is replaced, not changed
	if err := looked(co.t.instance.catalog.StillSole(co.t.work, s)); err != nil {
		return false, err
	}
	f.Leases = co.t.instance.leases // a frontier of an older version does not say
	switch {
	case f.Moving || f.Seek != nil && !f.Seek.Told:
		return co.endMove(f)
	case f.Owed: // a former owner died before it had written all of them
		return co.pay(f)
	case f.Ended:
		return false, nil // Run stops when it sees this
	}
	if scan := s.Requested(); scan != nil {
		return true, co.takeUp(f, scan)
	}
	if f.Scan.Active() {
		if moved, stays, err := co.turn(f, s); moved || stays || err != nil {
			return moved, err
		}
	}
	if f.Current == (source.Segment{}) {
		return co.advance(f, s)
	}
	return co.complete(f, s)
}

// begin commits the frontier of a first start.
func (co *coordinator) begin(s *offsets.State) (moved bool, _ error) {
	if s.Moving { // after a reset: what the leases still write is of the time before it
		if fenced, err := co.fenceOthers(); !fenced {
			return false, err
		}
	}
	in, err := co.lookAtBeginning(s)
	if err != nil {
		return false, err
	}
	return true, co.t.out.write(co.rules.begins(s, in))
}

// endMove is the second phase of a move (R2f): the fences of all other leases, and then, in one transaction, the
// frontier that names segments again, and the last marker once more, with a header that says where delivery continues.
// Records at or below that marker may follow it, and keys may move to new partitions (I5). Where there was no marker
// yet, nothing was promised.
//
// After the intent, which this worker has read, every acquisition sees it (I10). Before it, an owner may have read the
// old place:
//
//	owner of lease 1                        seek, and the owner of lease 0
//	reads an event of the old place
//	                                        intent: epoch+1
//	                                        fence of lease 1
//	its commit is refused                   the first segment of the new place is named
//
// Without the fence, its commit could come behind the first record of the new place.
func (co *coordinator) endMove(f offsets.Frontier) (moved bool, err error) {
	if fenced, err := co.fenceOthers(); !fenced { // I11: between the intent, which is committed, and the next segment
		return false, err
	}
	s, _, err := co.t.instance.view.Get() // with the pins that were committed before the fences
	if err != nil {
		return false, err
	}
	adopt(&f, s)
	promised := co.t.epoch.promised
	var in following
	announces := co.rules.repeats(&f, promised)
	if err := co.lookAtMarkers(&in, &f, announces, announces); err != nil {
		return false, err
	}
	return true, co.t.out.write(co.rules.moves(f, promised, in))
}

// pay writes the markers that a former owner has left owed.
func (co *coordinator) pay(f offsets.Frontier) (moved bool, err error) {
	at, err := history.ParseStored(f.Resolved)
	if err != nil {
		return false, err
	}
	c := &change{frontier: f}
	if c.encoders, err = co.encodersOf(f.Topics); err != nil {
		return false, err
	}
	c.frontier.Owed = false // behind them
	var own envelope.Timestamp
	if f.Repeat != nil {
		own, _ = history.ParseStored(f.Repeat.Resolved)
	}
	c.parts = part{marker: at, topics: f.Topics}.split(own, f.Found())
	return true, co.t.out.write(c)
}

// takeUp begins a scan that was requested, or lets the leases end one that is to be cancelled.
func (co *coordinator) takeUp(f offsets.Frontier, scan *offsets.Scan) error {
	account := co.t.opts.Feed.Inventory != nil
	if account && !scan.Cancelled {
		scan.Containers = co.lookAtContainers(scan)
	}
	return co.t.out.write(co.rules.takesUp(f, scan, account, co.t.opts.Now()))
}

// turn moves the scan of f to the next phase of its round. Stays says that nothing else may happen to the frontier
// meanwhile.
func (co *coordinator) turn(f offsets.Frontier, s *offsets.State) (moved, stays bool, err error) {
	c, pace, stays := co.rules.turns(f, s, co.t.rounds, co.t.opts.Now())
	if c == nil {
		return false, stays, nil
	}
	if c.parts != nil { // the marker of a scan that ends everything
		if c.encoders, err = co.encodersOf(c.frontier.Topics); err != nil {
			return false, true, err
		}
	}
	if err = co.t.out.write(c); err == nil {
		co.t.rounds = pace
	}
	return true, true, err
}

// advance does what there is to do between two segments: deliver a bundle, or name the next one. Nothing is in flight.
func (co *coordinator) advance(f offsets.Frontier, s *offsets.State) (moved bool, err error) {
	adopt(&f, s)
	in, err := co.lookBetween(&f)
	if err != nil || !in.more {
		return false, err
	}
	if in.lost != nil && !co.rules.skips { // I8: also if only what is behind the end is left
		return false, co.t.doubt(in.lost)
	}
	c := co.rules.advances(f, co.t.epoch.promised, in, co.t.opts.Now())
	if in.bundle != nil { // whose counts go into the cursor; else that stays in a segment that is over
		c.cursor = co.t.cursor
		defer co.bundler.drop()
		co.bundler.lookEarly(c.frontier)
	}
	co.count(&c.frontier, len(c.parts), s)
	return true, co.t.out.write(c)
}

// complete commits, in one transaction, the frontier behind the current segment, and a marker to every partition, when
// all leases have delivered their shards.
func (co *coordinator) complete(f offsets.Frontier, s *offsets.State) (moved bool, err error) {
	m, lost, err := co.t.current(co.t.task(s), s)
	gone := lost != nil // then m is the one that the frontier remembers
	if err != nil {
		return false, err
	}
	if !gone {
		since, err := co.lookForDelay(&f, m)
		if err != nil {
			return false, err
		}
		if c := co.rules.grows(f, m, since); c != nil {
			return true, co.t.out.write(c)
		}
	}
	// I6: no marker before every shard is delivered.
	if !resolved.Complete(m, s) && !(mutation.NoBarrier && m.Finalized) {
		return false, nil
	}
	adopt(&f, s)
	in, err := co.lookAfter(&f, m, gone, s)
	if err != nil {
		return false, err
	}
	c := co.rules.completes(f, m, co.t.epoch.promised, in, co.t.opts.Now())
	co.count(&c.frontier, 1, s)
	return true, co.t.out.write(c)
}

// count puts into f how far a catch-up is.
func (co *coordinator) count(f *offsets.Frontier, completed int, s *offsets.State) {
	ahead := co.t.instance.history.Ahead()
	co.counting = history.CountAhead(f, completed, ahead, s.Cursors, co.t.opts.Now(), co.counting)
}

// fencers is how many leases are fenced at a time: each takes a producer.
const fencers = 4

// fenceOthers ends what the owners of all other leases have open. Without transactions there is no fence: it reports
// whether each owner that acquired its lease before now, and so perhaps before it could know of the move, has written a
// cursor of the new epoch.
func (co *coordinator) fenceOthers() (fenced bool, _ error) {
	t, inst, exact := co.t, co.t.instance, co.t.opts.Kafka.Transactional
	mutation.Crash("fences", "begun")
	fences, ctx := errgroup.WithContext(t.work)
	fences.SetLimit(fencers)
	for p := int32(1); p < int32(inst.leases); p++ {
		fences.Go(crash.Try(ctx, "fence", func() error {
			if exact {
				return inst.fence(ctx, p)
			}
			_, err := inst.view.Known(ctx, inst.cfg, inst.client, p)
			return err
		}))
	}
	if err := fences.Wait(); err != nil {
		return false, err
	}
	mutation.Crash("fences", "done")
	s, _, err := inst.view.Get()
	return err == nil && (exact || s.Entered()), err
}
