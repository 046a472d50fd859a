package bridge

import (
	"context"

	"golang.org/x/sync/errgroup"

	"blobfeed/envelope"
	"blobfeed/internal/mutation"
	"blobfeed/offsets"
)

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
	h := k.h
	if fenced, err := k.fenceOthers(); !fenced { // I11: between the intent, which is committed, and the next segment
		return false, err
	}
	s, _, err := h.shared.view.Get() // with the pins that were committed before the fences
	if err != nil {
		return false, err
	}
	if err := k.recount(&f, s); err != nil {
		return false, err
	}
	if f.Seek != nil && !f.Seek.Told {
		if h.opts.marks() && k.basis.promised != (envelope.Timestamp{}) {
			if err := k.mark(&f, k.basis.promised); err != nil {
				return false, err
			}
		}
		told := *f.Seek
		told.Told = true
		f.Seek = &told
	}
	f.Moving = false
	return true, h.lease.Commit(h.held, nil, &f)
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
