package bridge

import (
	"context"
	"maps"

	"blobfeed/bridge/pipeline"
	"blobfeed/offsets"
)

// keeper looks after the frontier, while a hold has lease 0. It belongs to the worker's goroutine.
type keeper struct {
	h         *hold
	basis     *basis
	w         *writer
	lookahead *pipeline.Lookahead // nil: nothing is read ahead
}

// recount reads the partitions of the topics of f, and of those that leases found since it was written (I6: none misses
// its marker), and puts them into f. Between two segments nothing is in flight, so they may change here (I5). S is nil
// at a first start.
func (k *keeper) recount(f *offsets.Frontier, s *offsets.State) error {
	if s != nil {
		for _, c := range s.Cursors {
			if c != nil {
				f.Adopt(c.Pins)
			}
		}
	}
	had := maps.Clone(f.Topics)
	if len(had) == 0 {
		had = map[string]int32{}
		for _, topic := range k.h.opts.constant() {
			had[topic] = 0
		}
	}
	return k.h.retryOpen(k.h.work, func(ctx context.Context) error {
		counts, err := k.h.shared.topics.Recount(ctx, had)
		if err == nil {
			f.Topics = counts
		}
		return err
	})
}
