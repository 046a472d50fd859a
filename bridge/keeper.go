package bridge

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"

	"blobfeed/bridge/pipeline"
	"blobfeed/internal/testing/mutation"
	"blobfeed/offsets"
	"blobfeed/resolved"
	"blobfeed/source"
)

// keeper looks after the frontier, while a hold has lease 0. It belongs to the worker's goroutine. Each step has three
// parts:
//
//	look    reads what the step depends on: manifests, listings, partition counts, encoders (look.go)
//	decide  makes a change of the state and of what was read; it is pure (decide.go)
//	write   commits the change (change.go)
//
// A transaction is open in the last part only. So a look that fails leaves nothing behind: the loop reports it, and the
// keeper looks again. And nothing is read while a change is half written, but the ends of partitions (change.go, mark).
type keeper struct {
	h              *hold
	rules          rules
	lookahead      *pipeline.Lookahead // nil: nothing is read ahead
	bundle         *bundle             // read and encoded, not written yet; nil: none is
	counting       bool                // the speed of a catch-up is measured from an earlier frontier of this hold
	lookedForDelay time.Time           // see overdue
}

func newKeeper(h *hold) *keeper { return &keeper{h: h, rules: newRules(h.opts, h.shared.leases)} }

// close gives up what was read ahead.
func (k *keeper) close() {
	k.dropBundle()
	k.stopReading()
}

// stepFirst does what there is to do for the frontier, or else the task of lease 0.
func (k *keeper) stepFirst(s *offsets.State) (todo, error) {
	if moved, err := k.step(s); moved || err != nil {
		return todoAgain, err
	}
	return k.h.step(s)
}

// step does what the keeper has to do in state s, if anything: write the first frontier, end a move, turn a round of a
// scan, complete the current segment, or go to the next one.
func (k *keeper) step(s *offsets.State) (moved bool, err error) {
	if s.Frontier == nil {
		return k.begin(s)
	}
	if after, ok := s.Regressed(); ok { // without transactions only: a former owner has written behind newer records
		k.h.opts.Log.Warn("a paused instance has written old records behind newer ones; delivering again from there",
			"after_segment", after, "at", s.Frontier.At())
		return true, k.write(&change{frontier: *s.Repair(after)})
	}
	f := *s.Frontier // what its fields point to may be in use: it is replaced, not changed
	if err := k.lookAtRivals(); err != nil {
		return false, err
	}
	f.Leases = k.h.shared.leases // a frontier of an older version does not say
	f.Base = source.Segment{}
	switch {
	case f.Moving || f.Seek != nil && !f.Seek.Told:
		return k.endMove(f)
	case f.Owed: // a former owner died before it had written all of them
		return k.pay(f)
	case f.Ended:
		return false, nil // Run stops when it sees this
	}
	if scan := s.Requested(); scan != nil {
		return true, k.takeUp(f, scan)
	}
	if f.Scan.Active() {
		if moved, stays, err := k.turn(f, s); moved || stays || err != nil {
			return moved, err
		}
	}
	if f.Current == (source.Segment{}) {
		return k.advance(f, s)
	}
	return k.complete(f, s)
}

// begin commits the frontier of a first start.
func (k *keeper) begin(s *offsets.State) (moved bool, _ error) {
	if s.Moving { // after a reset: what the leases still write is of the time before it
		if fenced, err := k.fenceOthers(); !fenced {
			return false, err
		}
	}
	in, err := k.lookAtBeginning(s)
	if err != nil {
		return false, err
	}
	return true, k.write(k.rules.begins(s, in))
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
func (k *keeper) endMove(f offsets.Frontier) (moved bool, err error) {
	if fenced, err := k.fenceOthers(); !fenced { // I11: between the intent, which is committed, and the next segment
		return false, err
	}
	s, _, err := k.h.shared.view.Get() // with the pins that were committed before the fences
	if err != nil {
		return false, err
	}
	adopt(&f, s)
	promised := k.h.basis.promised
	in, err := k.lookAtTopics(&f, k.rules.repeats(&f, promised))
	if err != nil {
		return false, err
	}
	return true, k.write(k.rules.moves(f, promised, in))
}

// pay writes the markers that a former owner has left owed.
func (k *keeper) pay(f offsets.Frontier) (moved bool, err error) {
	at, err := parseTime(f.Resolved)
	if err != nil {
		return false, err
	}
	c := &change{frontier: f}
	if c.encoders, err = k.encodersOf(f.Topics); err != nil {
		return false, err
	}
	c.frontier.Owed = false // behind them
	c.parts = []part{{marker: at, topics: f.Topics}}
	return true, k.write(c)
}

// takeUp begins a scan that was requested, or lets the leases end one that is to be cancelled.
func (k *keeper) takeUp(f offsets.Frontier, scan *offsets.Scan) error {
	account := k.h.opts.Inventory != nil
	if account && !scan.Cancelled {
		scan.Containers = k.countContainers(scan)
	}
	return k.write(k.rules.takesUp(f, scan, account, k.h.opts.Now()))
}

// turn moves the scan of f to the next phase of its round. Stays says that nothing else may happen to the frontier
// meanwhile.
func (k *keeper) turn(f offsets.Frontier, s *offsets.State) (moved, stays bool, err error) {
	c, stays := k.rules.turns(f, s, &k.h.rounds, k.h.opts.Now())
	if c == nil {
		return false, stays, nil
	}
	if c.parts != nil { // the marker of a scan that ends everything
		if c.encoders, err = k.encodersOf(c.frontier.Topics); err != nil {
			return false, true, err
		}
	}
	return true, true, k.write(c)
}

// advance does what there is to do between two segments: deliver a bundle, or name the next one. Nothing is in flight.
func (k *keeper) advance(f offsets.Frontier, s *offsets.State) (moved bool, err error) {
	adopt(&f, s)
	in, err := k.lookBetween(&f)
	if err != nil || !in.more {
		return false, err
	}
	if in.lost != nil && !k.rules.skips { // I8: also if only what is behind the end is left
		return false, k.h.doubt(in.lost)
	}
	c := k.rules.advances(f, k.h.basis.promised, in, k.h.opts.Now())
	if in.bundle != nil { // whose counts go into the cursor; else that stays in a segment that is over
		c.cursor = k.h.cursor
		defer k.dropBundle()
	}
	k.count(&c.frontier, len(c.parts), s)
	return true, k.write(c)
}

// complete commits, in one transaction, the frontier behind the current segment, and a marker to every partition, when
// all leases have delivered their shards.
func (k *keeper) complete(f offsets.Frontier, s *offsets.State) (moved bool, err error) {
	m, gone, err := k.lookAtCurrent(s)
	if err != nil {
		return false, err
	}
	if !gone {
		since, err := k.lookForDelay(&f, m)
		if err != nil {
			return false, err
		}
		if c := k.rules.grows(f, m, since); c != nil {
			return true, k.write(c)
		}
	}
	// I6: no marker before every shard is delivered.
	if !resolved.Complete(m, s) && !(mutation.NoBarrier && m.Finalized) {
		return false, nil
	}
	adopt(&f, s)
	in, err := k.lookBehind(&f, m, gone, s)
	if err != nil {
		return false, err
	}
	c := k.rules.completes(f, m, k.h.basis.promised, in, k.h.opts.Now())
	k.count(&c.frontier, 1, s)
	return true, k.write(c)
}

// count puts into f how far a catch-up is.
func (k *keeper) count(f *offsets.Frontier, completed int, s *offsets.State) {
	var names []source.Segment
	if listed := k.h.shared.names.Load(); listed != nil {
		names = *listed
	}
	k.counting = countSegments(f, completed, names, s.Cursors, k.h.opts.Now(), k.counting)
}

// fencers is how many leases are fenced at a time: each takes a producer.
const fencers = 4

// fenceOthers ends what the owners of all other leases have open. Without transactions there is no fence: it reports
// whether each owner that acquired its lease before now, and so perhaps before it could know of the move, has written a
// cursor of the new epoch.
func (k *keeper) fenceOthers() (fenced bool, _ error) {
	h, sh, exact := k.h, k.h.shared, k.h.opts.Transactional
	mutation.Crash("fences", "begun")
	fences, ctx := errgroup.WithContext(h.work)
	fences.SetLimit(fencers)
	for p := int32(1); p < int32(sh.leases); p++ {
		fences.Go(func() error {
			if exact {
				return sh.fence(ctx, p)
			}
			_, err := sh.view.Known(ctx, sh.cfg, sh.client, p)
			return err
		})
	}
	if err := fences.Wait(); err != nil {
		return false, err
	}
	mutation.Crash("fences", "done")
	s, _, err := sh.view.Get()
	return err == nil && (exact || s.Entered()), err
}

// fence acquires lease p for nobody, and discards what the brokers left open. The lease may have no work where the move
// leads. Then nobody else acquires it, and consumers would wait for the open records forever.
func (sh *shared) fence(ctx context.Context, p int32) error {
	lease, err := offsets.Fence(ctx, sh.cfg, sh.view, p)
	if err != nil {
		return err
	}
	defer lease.Close(ctx)
	mutation.Crash("fences", "one")
	return sh.discard(ctx, lease)
}
