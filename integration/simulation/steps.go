package simulation

import (
	"context"
	"strings"
	"time"

	"blobfeed/internal/history"
)

// step does one.
func (w *world) step(s Step) {
	ctx := context.Background()
	w.logf("step %s", strings.TrimSpace(s.String()))
	var i *instance
	if s.Instance >= 0 {
		if i = w.at(s.Instance); i == nil || i.ended() {
			return
		}
	}
	after := func(f func()) { time.AfterFunc(s.For, f) }
	switch s.Kind {
	case Append:
		w.append(s.N)
	case Burst:
		for range s.N {
			w.append(10)
			w.turn(w.feed.Next)
		}
	case Next:
		w.turn(w.feed.Turn)
		time.Sleep(50 * time.Millisecond)
		w.must(w.feed.Settle(ctx))
	case Reveal:
		w.must(w.feed.Reveal(ctx))
	case Roll:
		w.feed.Roll()
	case Remove:
		w.retire(s.N, s.For)
	case Damage:
		w.mu.Lock()
		w.due = append(w.due, s.For)
		w.mu.Unlock()
	case Pause:
		i.pause()
		after(i.resume)
	case Kill:
		i.let()
		i.link.sever()
		i.kill()
		go w.later(i, s.For)
	case Stop:
		i.let()
		i.stop()
		go w.later(i, s.For)
	case Cut:
		i.link.sever()
		after(i.link.mend)
	case Deaf:
		i.link.deafen(true)
		after(func() { i.link.deafen(false) })
	case Lose, Late:
		i.link.set(&trap{key: s.Key, left: s.N, kind: s.Kind, hold: s.For})
	case Stall:
		i.link.setStall(s.Key, time.Now().Add(s.For))
	case Slow:
		i.window.behave(s.For/4, nil)
		after(func() { i.window.behave(storeLatency, nil) })
	case Fail:
		i.window.behave(storeLatency, errFailing)
		after(func() { i.window.behave(storeLatency, nil) })
	case Refuse:
		w.refuse(s)
	case Shuffle:
		w.cluster.ShufflePartitionLeaders()
		w.cluster.RehashCoordinators()
	case Compact:
		w.cluster.Compact()
	case Grow:
		if !w.plan.ByContainer {
			w.grow(s.N)
		}
	case Seek:
		w.seekTo(s)
	case Reset:
		w.restart(s)
	case Vanish:
		w.storage.vanish(s.N)
	case Scan:
		_, _ = w.request(s.N) // one that fails is an operator's who gives up
	}
}

// append adds events to the feed.
func (w *world) append(n int) {
	if w.storage == nil {
		w.must(w.feed.Append(context.Background(), n, w.judge.expect))
		return
	}
	w.storage.change(n)
	w.publish()
}

// turn ends a segment. What has happened until then is in it.
func (w *world) turn(next func(context.Context) error) {
	if w.storage == nil {
		w.must(next(context.Background()))
		return
	}
	w.storage.freeze(true)
	defer w.storage.freeze(false)
	w.publish()
	w.must(next(context.Background()))
	w.storage.turn(w.feed.Segment())
}

// later starts the instance of a slot again after some time.
func (w *world) later(i *instance, after time.Duration) {
	t := time.NewTimer(stopLimit)
	defer t.Stop()
	began := time.Now()
	select {
	case <-i.done:
	case <-t.C:
		w.fail("%s was stopped or killed and has not ended after %s", i.name, stopLimit)
		return
	}
	time.Sleep(after - time.Since(began))
	w.run(i.slot)
}

// seekTo moves the bridge while it runs.
func (w *world) seekTo(s Step) {
	f := w.frontier()
	segments := w.blobs.segments()
	if f == nil || f.Resolved == "" || len(segments) == 0 || w.plan.Retention == EatsUnread {
		w.heal(nil) // no seek goes past it
		return      // nothing was promised, so no marker would tell of the seek
	}
	text := segments[min(s.N*len(segments)/100, len(segments)-1)]
	target, err := history.ParseTarget(text)
	if err != nil {
		w.fail("%v", err)
		return
	}
	w.mu.Lock()
	w.moved = true
	w.mu.Unlock()
	crash := time.Duration(0)
	if s.N%3 == 0 && s.N < latest {
		crash = time.Duration(s.N) * 10 * time.Millisecond
	}
	skips := func(e *expected) bool { return e.Segment < text }
	const attempts = 5
	for k := 0; k < attempts; k++ {
		err = w.seek(target, crash)
		w.logf("seek to %s: %v", target, err)
		if err == nil || s.N < latest {
			break
		}
		time.Sleep(2 * time.Second)
	}
	if s.N == latest {
		w.heal(func(d *wound) bool { return err == nil && d.segment() < text })
	} else {
		w.heal(nil) // it may go back
	}
	if err != nil {
		text = "" // nobody knows whether it is done
	}
	w.judge.sought(text, skips)
}
