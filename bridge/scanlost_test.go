package bridge

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"blobfeed/internal/history"
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
			o.Feed.InitialScan, o.Feed.SkipGaps, o.Feed.RescanGaps = ScanYes, rescan, rescan
			err := runOnce(t, o)
			if !rescan {
				var gap *history.GapError
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

// The newest segment is years older than the watermark says: the feed still begins behind it, and nothing of it is
// delivered after the rows.
func TestScanOfAnOldFeed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2, 50)
	w.change(20)
	w.publish(false)
	w.next()
	w.memory.remove("idx/segments/" + w.segment())
	w.memory.replace("meta/segments.json", "2026-01-01", "2029-01-01")
	c := broker(t)
	o := w.options(c)
	o.Feed.InitialScan = ScanYes
	must(t, runOnce(t, o))
	seen := newScanned()
	w.compare(c, seen)
	if seen.events != 0 || seen.rows == 0 {
		t.Errorf("%d rows, %d events", seen.rows, seen.events)
	}
}

// Behind a scan of a feed with one segment, no history is left over, and none is missing.
func TestHeadroomBehindAScan(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1, 5)
	o := w.options(broker(t))
	o.Feed.InitialScan = ScanYes
	w.store.Before = func(context.Context, string, inventory.Query) error { return errors.New("not yet") }
	live(t, o)
	if left := <-w.recorder.headroom; left != 0 {
		t.Errorf("headroom is %s", left)
	}
}

// A seek goes to the segment with which the feed began behind the initial scan, and retention has removed it: delivery
// continues at what is left, as after every other seek.
func TestSeekToTheBeginOfAScan(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2, 50)
	w.change(20)
	w.publish(false)
	c := broker(t)
	o := w.options(c)
	o.Feed.InitialScan = ScanYes
	must(t, runOnce(t, o))
	begin := w.segment()
	w.next()
	w.change(20)
	w.publish(false)
	must(t, runOnce(t, o))
	w.memory.remove("idx/segments/" + begin)
	for shard := range 3 {
		w.memory.remove(fmt.Sprintf("log/%02d/%s", shard, begin))
	}
	to, err := history.ParseTarget(begin)
	must(t, err)
	s := seize(t, o)
	must(t, s.Seek(t.Context(), to.Move))
	s.Close(t.Context())
	must(t, runOnce(t, o))
	f := awaitState(t, o, "the state is read", func(s *offsets.State) bool { return s.Frontier != nil }).Frontier
	if f.Gaps != 0 || f.Current.String() != w.segment() {
		t.Errorf("%d gaps, delivery is at %s", f.Gaps, f.At())
	}
	w.compare(c)
}
