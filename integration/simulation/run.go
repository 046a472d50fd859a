package simulation

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"blobfeed/bridge"
	"blobfeed/source"
)

const (
	metadataAge = time.Second
	settleLimit = 5 * time.Minute  // from the last fault to the end of all deliveries
	stopLimit   = 90 * time.Second // for an instance to end
)

// Result is what became of a run.
type Result struct {
	Problems []string
	Records  int
	Peak     int           // bytes that a lease has read and not committed
	Virtual  time.Duration // that passed
}

// Run carries a plan out, and passes on each line of its log. It must be called in a bubble of testing/synctest.
func Run(p *Plan, log func(string)) (r Result) {
	w, err := newWorld(p, log)
	if err != nil {
		return Result{Problems: []string{err.Error()}}
	}
	reading, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.judge.read(reading)
	}()
	whole := w.play()
	w.stopAll()
	if whole && p.Once && !w.moved {
		w.once()
	}
	w.drain()
	for _, problem := range w.judge.check(whole) {
		w.fail("%s", problem)
	}
	cancel()
	w.judge.cl.Close()
	<-done
	w.cluster.Close()
	time.Sleep(2 * settleLimit) // what the last steps have left to the clock
	r = Result{Problems: w.failures, Peak: w.peak, Virtual: time.Since(w.began)}
	for _, records := range w.judge.lanes {
		r.Records += len(records)
	}
	return r
}

// play takes the plan's steps, ends what is wrong, and waits until everything is delivered. Whole is false if it can't
// be.
func (w *world) play() (whole bool) {
	ctx := context.Background()
	w.must(w.feed.Open(ctx))
	for range w.plan.Backlog {
		w.must(w.feed.Append(ctx, 5+int(w.plan.Seed%20), w.judge.expect))
		w.must(w.feed.Next(ctx))
	}
	began := time.Now()
	for slot := range w.plan.Instances {
		time.Sleep(time.Duration(w.plan.Seed%7) * 100 * time.Millisecond)
		w.run(slot)
	}
	for _, s := range w.plan.Steps {
		time.Sleep(time.Until(began.Add(s.At)))
		w.step(s)
	}
	w.must(w.feed.Finalize(ctx))
	if !w.moved {
		w.heal(nil)
	}
	w.mend()
	for slot := range w.plan.Instances {
		w.run(slot)
	}
	w.logf("the faults are over")
	return w.settle(time.Now().Add(settleLimit))
}

func (w *world) must(err error) {
	if err != nil {
		w.fail("%v", err)
	}
}

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
		w.must(w.feed.Append(ctx, s.N, w.judge.expect))
	case Burst:
		for range s.N {
			w.must(w.feed.Append(ctx, 10, w.judge.expect))
			w.must(w.feed.Next(ctx))
		}
	case Next:
		w.must(w.feed.Turn(ctx))
		time.Sleep(50 * time.Millisecond)
		w.must(w.feed.Settle(ctx))
	case Reveal:
		w.must(w.feed.Reveal(ctx))
	case Roll:
		w.feed.Roll()
	case Remove:
		w.retire(s.N)
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
	}
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
		return // nothing was promised, so no marker would tell of it
	}
	text := segments[min(s.N*len(segments)/100, len(segments)-1)]
	target, err := bridge.ParseTarget(text)
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

// restart stops the instances, but for one that is paused, resets the bridge, and starts them again.
func (w *world) restart(s Step) {
	w.heal(nil)
	var paused *instance
	if w.plan.ExactlyOnce { // else nothing keeps it from writing, and an operator has to stop it
		paused = w.at(s.N % w.plan.Instances)
	}
	if paused != nil {
		paused.pause()
	}
	for _, i := range w.live() {
		if i != paused {
			i.let()
			i.stop()
			w.await(i)
		}
	}
	w.mu.Lock()
	w.moved = true
	w.mu.Unlock()
	for k := range 20 {
		crash := time.Duration(0)
		if k == 0 {
			crash = time.Duration(s.N) * 10 * time.Millisecond
		}
		err := w.reset(crash)
		w.logf("reset: %v", err)
		if err == nil {
			break
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	ends := map[lane]int64{}
	if topics, err := w.admin.ListTopics(ctx); err == nil {
		for topic := range topics {
			if !strings.HasPrefix(topic, topicName) {
				continue
			}
			listed, err := w.admin.ListCommittedOffsets(ctx, topic)
			w.must(err)
			for p, o := range listed[topic] {
				ends[lane{topic, p}] = o.Offset
			}
		}
	}
	w.judge.forget(ends)
	for slot := range w.plan.Instances {
		w.run(slot)
	}
	if paused != nil {
		go func() {
			// What it has open belongs to the time before, and so do its records until it is fenced.
			for began := time.Now(); time.Since(began) < settleLimit && w.frontier() == nil; {
				time.Sleep(time.Second)
			}
			time.Sleep(time.Duration(s.N) * 100 * time.Millisecond)
			paused.resume()
		}()
	}
}

// await waits for the end of an instance.
func (w *world) await(i *instance) {
	t := time.NewTimer(stopLimit)
	defer t.Stop()
	select {
	case <-i.done:
	case <-t.C:
		w.fail("%s was stopped and has not ended after %s", i.name, stopLimit)
		i.kill()
		<-i.done
	}
}

// settle waits until everything is delivered and complete.
func (w *world) settle(limit time.Time) bool {
	last := source.SegmentAt(w.feed.Segment())
	for {
		w.mu.Lock()
		gapped := w.gapped
		w.mu.Unlock()
		if gapped {
			return false
		}
		missing := w.judge.missing()
		f := w.frontier()
		if len(missing) == 0 && f != nil && (f.Completed == last || f.Ended) {
			return true
		}
		if time.Now().After(limit) {
			where := "no frontier"
			if f != nil {
				where = fmt.Sprintf("completed %s, current %s, epoch %d", f.Completed, f.Current, f.Epoch)
			}
			first := ""
			if len(missing) > 0 {
				first = ", the first is " + missing[0].Position()
			}
			w.fail("stuck: %s after the last fault %d events have not come%s; frontier: %s, the last segment is %s",
				settleLimit, len(missing), first, where, last)
			return false
		}
		time.Sleep(time.Second)
	}
}

// stopAll stops the instances in order.
func (w *world) stopAll() {
	w.mu.Lock()
	w.closing = true
	w.mu.Unlock()
	for _, i := range w.live() {
		i.let()
		i.stop()
	}
	for _, i := range w.live() {
		w.await(i)
	}
}

// once runs two instances with --once on what the feed has then. Who says that everything is delivered must be right.
func (w *world) once() {
	ctx := context.Background()
	w.must(w.feed.Open(ctx))
	w.must(w.feed.Append(ctx, 30, w.judge.expect))
	w.must(w.feed.Reveal(ctx))
	var all []*instance
	for k := range 2 {
		i := w.start(k, fmt.Sprintf("once%d", k), true)
		i.let()
		i.window.behave(time.Duration(w.plan.Seed%10)*40*time.Millisecond, nil)
		all = append(all, i)
		time.Sleep(time.Duration(w.plan.Seed%30) * 50 * time.Millisecond)
	}
	for len(all) > 0 {
		began := time.Now()
		for !slices.ContainsFunc(all, (*instance).ended) {
			if time.Since(began) > settleLimit {
				w.fail("a run with --once has not ended after %s", settleLimit)
				for _, i := range all {
					i.kill()
					w.await(i)
				}
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
		all = slices.DeleteFunc(all, func(i *instance) bool {
			if !i.ended() {
				return false
			}
			w.drain()
			if missing := w.judge.missing(); i.err == nil && len(missing) > 0 {
				w.fail("%s says that all is delivered; %d events have not come, the first is %s",
					i.name, len(missing), missing[0].Position())
			} else if i.err != nil {
				w.fail("%s: %v", i.name, i.err)
			}
			return true
		})
	}
}

// drain waits until the judge has read what is committed.
func (w *world) drain() { time.Sleep(3 * time.Second) }
