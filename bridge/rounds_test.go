package bridge

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"blobfeed/offsets"
	"blobfeed/source/inventory"
)

// onCommit is called for each commit of a lease, by its goroutine.
type onCommit func(Commit)

func (f onCommit) Committed(c Commit) { f(c) }

// No lease lists before every lease has stopped delivering: an event that is in memory would come behind a newer row.
func TestRoundWaitsForDelivery(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3, 50)
	c := broker(t)
	o := w.options(c)
	const busy = 1
	delivering, release := make(chan struct{}), make(chan struct{})
	released := sync.OnceFunc(func() { close(release) })
	defer released()
	delivers := sync.OnceFunc(func() { close(delivering) })
	o.Observer = append(o.Observer, onCommit(func(c Commit) {
		if c.Lease == busy && c.Read > 0 {
			delivers()
			<-release
		}
	}))
	var listed atomic.Int32
	w.store.Before = func(_ context.Context, op string, _ inventory.Query) error {
		if op == "list" {
			listed.Add(1)
		}
		return nil
	}
	w.change(100)
	w.publish(false)
	live(t, o)
	<-delivering
	ask(t, o, offsets.Request{ID: "all", Time: time.Now()})
	awaitState(t, o, "the other leases hold", func(s *offsets.State) bool {
		for lease, cursor := range s.Cursors {
			if scan := scanOf(s); !scan.Active() || lease != busy && cursor.Listing(scan).Held < scan.Round {
				return false
			}
		}
		return true
	})
	ask(t, o, offsets.Request{ID: "all", Time: time.Now(), Cancel: true})
	s := awaitState(t, o, "the keeper has moved the frontier once more", func(s *offsets.State) bool {
		return scanOf(s) != nil && scanOf(s).Cancelled
	})
	if n := listed.Load(); scanOf(s).Phase != offsets.ScanHolds || n > 0 {
		t.Errorf("in phase %s, after %d requests", scanOf(s).Phase, n)
	}
	released()
	awaitState(t, o, "it is cancelled", isDone("all"))
	ask(t, o, offsets.Request{ID: "next", Time: time.Now()})
	awaitState(t, o, "another one is done", isDone("next"))
	w.compare(c)
}

// A seek cancels a scan: its leases begin at another place, and their listings are void.
func TestSeekCancelsScan(t *testing.T) {
	target, err := ParseTarget("earliest")
	must(t, err)
	f := offsets.Frontier{Scan: &offsets.Scan{ID: "a", Round: 2, Phase: offsets.ScanLists}}
	target.Move(&f)
	if f.Scan.Active() || !f.Scan.Cancelled || f.Scan.ID != "a" {
		t.Errorf("%+v", f.Scan)
	}
}
