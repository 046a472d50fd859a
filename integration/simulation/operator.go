package simulation

import (
	"context"
	"strings"
	"time"

	"blobfeed/internal/history"
	"blobfeed/internal/plain"
	"blobfeed/offsets"
)

// toolTimeout is when a seek or reset is given up.
const toolTimeout = 30 * time.Second

// verb is the instance that a verb is.
const verb = "tool"

// seek does what "bridge seek --force" does.
func (w *world) seek(to history.Target, crash time.Duration) error {
	return w.seized(crash, func(ctx context.Context, s *offsets.Seized) error { return s.Seek(ctx, to.Move) })
}

// reset does what "bridge reset" does, and returns where the topics end before it: all owners are fenced then. Offsets
// below that may belong to transactions that are committed later than others above it.
func (w *world) reset(crash time.Duration) (ends map[lane]int64, _ error) {
	err := w.seized(crash, func(ctx context.Context, s *offsets.Seized) error {
		ends = w.ends()
		if err := s.Reset(ctx); err != nil {
			return err
		}
		if f := w.frontier(); f != nil && f.Born <= s.State.Epoch {
			w.fail("a reset reports success, but the frontier of before it counts: %+v", f)
		}
		return nil
	})
	return ends, err
}

// seized takes all leases and calls do. If crash is not zero, the tool dies after that time.
func (w *world) seized(crash time.Duration, do func(context.Context, *offsets.Seized) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), toolTimeout)
	defer cancel()
	w.links++
	l := newLink(w.net.DialContext, w.plan.latency(w.links))
	if crash > 0 {
		t := time.AfterFunc(crash, func() { l.sever(); cancel() })
		defer t.Stop()
	}
	client, err := w.client("tool", l)
	if err != nil {
		return err
	}
	s, err := offsets.Seize(ctx, &offsets.Config{
		Topic: plain.StateTopic(name), Name: name, Instance: verb, Transactional: w.plan.ExactlyOnce,
		TxnTimeout: w.timeout(verb), Client: client, Now: w.now,
		Trace: func(e offsets.Event) { w.heard(verb, e) },
	}, w.plan.Leases)
	if err != nil {
		return err
	}
	defer s.Close(ctx)
	if s.State.Frontier == nil {
		return nil
	}
	return do(ctx, s)
}

// restart stops the instances, resets the bridge, and starts them again. With transactions one of them is only paused,
// and one that was killed may start meanwhile. Without transactions the verb requires a group without members.
func (w *world) restart(s Step) {
	w.heal(nil)
	var paused *instance
	if w.plan.ExactlyOnce {
		if paused = w.at(s.N % w.plan.Instances); paused != nil {
			paused.pause()
		}
	}
	w.setBarred(!w.plan.ExactlyOnce)
	w.stopAllBut(paused)
	w.mu.Lock()
	w.moved = true
	w.mu.Unlock()
	crash := time.Duration(s.N) * 10 * time.Millisecond
	if !w.plan.ExactlyOnce {
		w.startUnseen(s)
	}
	var ends map[lane]int64
	for range 20 {
		var err error
		ends, err = w.reset(crash)
		w.logf("reset: %v", err)
		crash = 0
		if !w.plan.ExactlyOnce {
			w.setBarred(true)
			if w.stopAllBut(nil) > 0 {
				continue // what the instance wrote is of before the reset, or of after it: nobody knows
			}
			ends = w.ends()
		}
		if err == nil {
			break
		}
	}
	if ends == nil {
		ends = w.ends()
	}
	w.judge.forget(ends)
	w.setBarred(false)
	for slot := range w.plan.Instances {
		w.run(slot)
	}
	if paused != nil {
		w.outcast.Store(paused)
		go w.resumeLater(paused, time.Duration(s.N)*100*time.Millisecond)
	}
}

// startUnseen starts an instance behind the back of the verb, which has found the group without members: a killed
// instance stays one for a session. When it returns, the instance is about to acquire its leases, or has them.
func (w *world) startUnseen(s Step) {
	time.Sleep(w.plan.Session)
	w.setBarred(false)
	w.run(s.N % w.plan.Instances)
	time.Sleep(200*time.Millisecond + time.Duration(s.N)*4*time.Millisecond)
}

// resumeLater ends the pause of an instance some time after the first frontier. What the instance has open belongs to
// the time before a reset, and so do its records until it is fenced.
func (w *world) resumeLater(i *instance, after time.Duration) {
	for began := time.Now(); time.Since(began) < settleLimit && w.frontier() == nil; {
		time.Sleep(time.Second)
	}
	time.Sleep(after)
	w.outcast.CompareAndSwap(i, nil)
	i.resume()
}

// dropOutcast kills the instance that is paused behind a reset, if the first frontier is not there: what it writes
// until then belongs to the time before the reset.
func (w *world) dropOutcast() {
	if i := w.outcast.Load(); i != nil && w.frontier() == nil {
		i.let()
		i.link.sever()
		i.kill()
		i.mend() // what waits for the end of the pause ends
		<-i.done
	}
}

// stopAllBut stops the instances in order, except one, and returns how many it has stopped.
func (w *world) stopAllBut(one *instance) (stopped int) {
	for _, i := range w.live() {
		if i != one {
			i.let()
			i.stop()
			w.await(i)
			stopped++
		}
	}
	return stopped
}

// ends returns where the partitions of the topics of records end.
func (w *world) ends() map[lane]int64 {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	ends := map[lane]int64{}
	topics, err := w.admin.ListTopics(ctx)
	if err != nil {
		return ends
	}
	for topic := range topics {
		if !strings.HasPrefix(topic, topicName) {
			continue
		}
		listed, err := w.admin.ListEndOffsets(ctx, topic)
		w.must(err)
		for p, o := range listed[topic] {
			ends[lane{topic, p}] = o.Offset
		}
	}
	return ends
}
