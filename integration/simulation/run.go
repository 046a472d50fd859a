package simulation

import (
	"context"
	"fmt"
	"slices"
	"time"

	"blobfeed/internal/testing/protocol"
	"blobfeed/offsets"
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
	Trace    protocol.Trace
	Scan     protocol.ScanTrace  // of a plan that is traced, with scans
	Least    protocol.LeastTrace // the same, without transactions
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
	if w.gapped {
		w.lost()
	}
	for _, problem := range w.judge.check(whole) {
		w.fail("%s", problem)
	}
	cancel()
	w.judge.cl.Close()
	<-done
	w.cluster.Close()
	time.Sleep(2 * settleLimit) // what the last steps have left to the clock
	r = Result{Problems: w.failures, Peak: w.peak, Virtual: time.Since(w.began)}
	if w.tracer != nil {
		r.Trace, r.Scan, r.Least = w.tracer.followed, w.tracer.scanned, w.tracer.unfenced
	}
	for _, records := range w.judge.lanes {
		r.Records += len(records)
	}
	return r
}

// play takes the plan's steps, ends what is wrong, and waits until everything is delivered. Whole is false if it can't
// be.
func (w *world) play() (whole bool) {
	ctx := context.Background()
	if w.storage != nil {
		w.keepKeys(ctx)
	}
	w.must(w.feed.Open(ctx))
	for range w.plan.Backlog {
		n := 5 + int(w.plan.Seed%20)
		if w.plan.Traced {
			n = traced
		}
		w.append(n)
		w.turn(w.feed.Next)
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
	if w.storage != nil {
		w.storage.freeze(true)
		w.storage.hasten()
		w.publish()
		w.storage.turn(w.feed.Segment().Add(time.Hour)) // the service finalizes a segment when it is over
	}
	w.tracer.happens(protocol.Event{Kind: protocol.Finalized})
	w.must(w.feed.Finalize(ctx))
	if !w.moved {
		w.heal(nil)
	}
	w.dropOutcast()
	w.mend()
	for slot := range w.plan.Instances {
		w.run(slot)
	}
	w.logf("the faults are over")
	whole = w.settle(time.Now().Add(settleLimit))
	if whole && w.plan.Repair {
		whole = w.repair()
	}
	return whole
}

func (w *world) must(err error) {
	if err != nil {
		w.fail("%v", err)
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
		scans := w.storage != nil && !f.Over() && w.scans() // who has delivered all to END_TIME takes no request
		if len(missing) == 0 && f != nil && (f.Completed == last || f.Ended) && !scans {
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

// lost checks that history is lost if an instance says so. Something of the removed segments was still to be delivered,
// when it ended or in the end. Another instance may have read more of them before they were removed, and deliver that
// after the first one has ended.
func (w *world) lost() {
	s := w.state()
	if s == nil || s.Frontier == nil {
		w.fail("history is lost, and nothing is known of its progress")
		return
	}
	w.mu.Lock()
	owed := w.owed || w.owes(s)
	w.mu.Unlock()
	if !owed {
		w.fail("an instance says that history is lost, and all is delivered up to %s, which was removed", w.retired)
	}
}

// owes reports whether, by a state, something of the removed segments is to be delivered. The lock must be held.
func (w *world) owes(s *offsets.State) bool {
	f := s.Frontier
	if f.Current == (source.Segment{}) {
		return w.retired.Compare(f.Completed) > 0
	}
	return w.retired.Compare(f.Current) >= 0 && slices.ContainsFunc(f.Shards, func(shard int) bool {
		c := s.Cursors[shard%w.plan.Leases]
		return c == nil || !c.Finished(f.Current)
	})
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
	if w.storage != nil {
		w.storage.turn(w.feed.Segment())
		w.storage.freeze(false)
		w.append(30)
		w.storage.freeze(true)
		w.publish()
	} else {
		w.append(30)
	}
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
