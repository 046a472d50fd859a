package bridge

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"blobfeed/offsets"
	"blobfeed/source/inventory"
)

// While the account is listed, retention removes the segment from which the feed was to be delivered: that is lost
// history, although nothing was delivered yet.
func TestHistoryLostWhileScanning(t *testing.T) {
	t.Parallel()
	for _, rescan := range []bool{false, true} {
		t.Run(fmt.Sprintf("rescan %t", rescan), func(t *testing.T) {
			w := newWorld(t, 2, 50)
			w.change(20)
			w.publish(false)
			begin := w.segment()
			var once sync.Once
			w.store.Before = func(_ context.Context, op string, _ inventory.Query) error {
				if op == "list" {
					once.Do(func() {
						w.change(20)
						w.publish(false)
						w.next()
						w.memory.remove("idx/segments/" + begin)
						for shard := range 3 {
							w.memory.remove(fmt.Sprintf("log/%02d/%s", shard, begin))
						}
					})
				}
				return nil
			}
			c := broker(t)
			o := w.options(c)
			o.InitialScan, o.SkipGaps, o.RescanGaps = ScanYes, rescan, rescan
			err := runOnce(t, o)
			if !rescan {
				var gap *GapError
				if !errors.As(err, &gap) || gap.At.String() != begin {
					t.Errorf("%v, want the loss of %s", err, begin)
				}
				return
			}
			must(t, err)
			awaitState(t, o, "the loss is recorded and repaired", func(s *offsets.State) bool {
				f := s.Frontier
				return f != nil && f.Gaps == 1 && scanOf(s).Done && !scanOf(s).Initial
			})
			w.compare(c)
		})
	}
}
