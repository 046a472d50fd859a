package protocol

// turn is the worker of lease p of an instance, and what it may do in a state.
type turn struct {
	*exact
	s    *exactState
	i, p int
	in   instance
	w    worker
	f    frontier // by the view of the instance
	to   []step[exactState]
}

// name is of an instance.
func name(i int) uint8 { return 'A' + uint8(i) }

func (a *turn) add(t exactState, progress bool, l label) {
	a.to = append(a.to, step[exactState]{t, l.with("%c/%d ", name(a.i), uint8(a.p)), progress})
}

// do is a step to another phase. A worker that gives its lease up keeps nothing of it.
func (a *turn) do(phase uint8, l label, change func(*exactState, *worker)) {
	a.move(true, phase, l, change)
}

// fault is a step that takes one of the faults that the situation allows.
func (a *turn) fault(phase uint8, l label, change func(*exactState, *worker)) {
	if a.s.faults > 0 {
		a.move(false, phase, l, func(t *exactState, w *worker) {
			t.faults--
			if change != nil {
				change(t, w)
			}
		})
	}
}

func (a *turn) move(progress bool, phase uint8, l label, change func(*exactState, *worker)) {
	t := *a.s
	w := &t.in[a.i].w[a.p]
	w.phase = phase
	if change != nil {
		change(&t, w)
	}
	if w.phase == idle {
		*w = worker{missing: w.missing, drained: w.drained}
	}
	a.add(t, progress, l)
}

// send produces a transaction and asks for its end. A worker that was fenced learns it now.
func (a *turn) send(l label, tx txn) { a.sendAhead(l, tx, 0) }

// sendAhead is send, of a bundle: segments up to one are known to be there.
func (a *turn) sendAhead(l label, tx txn, ahead uint8) {
	if a.s.holder[a.p] != uint8(a.i+1) {
		a.do(idle, say("is fenced"), nil)
		return
	}
	if a.s.txn[a.p].open {
		return
	}
	a.do(sent, l, func(t *exactState, w *worker) {
		tx.ending, w.ahead = true, ahead
		t.produce(a.p, tx)
	})
}

// worker appends the steps of a worker.
func (x *exact) worker(s *exactState, i, p int, to []step[exactState]) []step[exactState] {
	a := turn{exact: x, s: s, i: i, p: p, in: s.in[i], w: s.in[i].w[p], f: s.frontier(s.in[i].read[0]), to: to}
	mine := s.group[p] == uint8(i+1)
	if !mine && a.w.phase != idle {
		a.do(idle, say("is revoked by the group"), func(_ *exactState, w *worker) { w.drained, w.missing = 0, 0 })
	}
	if s.holder[p] != uint8(i+1) && a.looks() {
		a.do(idle, say("sees that another has acquired the lease"), nil)
	}
	switch a.w.phase {
	case idle:
		a.acquire(mine)
	case acquiring:
		if a.in.read[p] >= a.w.until[1] && s.passed(a.in.read[0], a.w.until[0], 0) {
			a.do(ready, say("holds the lease and reads its cursor"), func(_ *exactState, w *worker) {
				w.until = [2]uint8{}
				if !x.readFirst {
					w.cur = x.cursor(s, a.in.read, p).pack()
				}
			})
		}
	case ready:
		a.work()
	case reading:
		a.read()
	case holding:
		a.deliver()
	case sent:
		a.fault(idle, say("does not hear whether its transaction is committed"), nil)
	case committed:
		if x.cursorApart && !a.w.behind && a.w.segment != 0 {
			a.do(holding, say("hears that its event is committed"), func(_ *exactState, w *worker) { w.behind = true })
			break
		}
		a.do(ready, say("hears that its transaction is committed"), func(t *exactState, w *worker) {
			w.behind = false
			t.in[i].read[p] = max(t.in[i].read[p], w.until[1])
			if r := t.log[p][w.until[1]-1]; !r.isFrontier() {
				w.cur = r
			}
			w.until = [2]uint8{}
		})
		a.fault(idle, say("does not hear that its transaction is committed"), nil)
	case fencedAll:
		a.keeperMoved()
	case listing:
		a.keeperLists()
	case bundling:
		a.keeperBundle()
	}
	return a.to
}

// looks reports whether the worker looks at its view, where it may find another owner.
func (a *turn) looks() bool {
	switch a.w.phase {
	case idle, acquiring, committed, hanging:
		return false
	case reading, holding:
		return a.waits
	}
	return true
}

// acquire fences the former owner, if there is work.
func (a *turn) acquire(mine bool) {
	x, s, p := a.exact, a.s, a.p
	if p >= int(a.in.leases) || x.knownAtStart && !s.passed(a.in.read[0], a.in.until, 0) {
		return
	}
	if x.frozen && a.f.grown != (a.in.leases == 2) {
		return // another lease count than the frontier's: the instance ends
	}
	if n := a.f.current; p > 0 && a.w.missing == 0 { // a worker without work acquires nothing
		c := x.cursor(s, a.in.read, p)
		if n == 0 || c.finished(n) || !x.owns(a.in.leases, p, n) {
			return
		}
		if s.removed >= n && !x.ownLoss && x.onGap == fail {
			a.die(n, 1<<p)
			return
		}
		if s.removed >= n && x.onGap == skip && !x.gapByCursor {
			return // the keeper moves the frontier
		}
	}
	take := a.do
	if !mine {
		if x.once {
			return
		}
		take = a.fault // the group is not of one mind
	}
	take(acquiring, say("fences the former owner, and waits for its view"), func(t *exactState, w *worker) {
		if x.readFirst {
			w.cur = x.cursor(s, a.in.read, p).pack()
		}
		t.fence(p, uint8(a.i+1))
		w.until = [2]uint8{0, t.n[p]}
		if x.knownAfterFence {
			w.until[0] = t.end(0)
		}
	})
}

// work is what the holder of a lease does next.
func (a *turn) work() {
	x, s, c := a.exact, a.s, a.w.cur.cursor()
	if c.epoch < a.f.epoch {
		a.do(ready, say("sees a new epoch and reads its cursor again"), func(_ *exactState, w *worker) {
			w.cur, w.ahead = x.cursor(s, a.in.read, a.p).pack(), 0
		})
		return
	}
	if a.p == 0 && a.keep() {
		return
	}
	n := a.f.current
	if n == 0 || c.finished(n) || c.ahead(a.f) || !x.owns(a.in.leases, a.p, n) {
		return
	}
	shard, more := x.unread(c, a.in.leases, a.p, n)
	if lacks := more && s.lacks(n, shard); lacks || s.removed >= n {
		a.missed(n, c)
		if lacks || !x.known {
			return
		}
	}
	switch {
	case more:
		a.do(reading, say("starts to read segment %d", n),
			func(_ *exactState, w *worker) { w.segment, w.missing = n, 0 })
	case x.isOpen(s, n) && a.w.drained != n:
		a.do(ready, say("reads the open segment %d to its end", n), func(_ *exactState, w *worker) { w.drained = n })
	case !x.isOpen(s, n):
		c = c.in(n)
		c.done = true
		a.send(say("commits that segment %d is read to its end", n), txn{rec: c.pack()})
	}
}

// isOpen reports whether segment n is not finalized.
func (x *exact) isOpen(s *exactState, n uint8) bool { return x.openLast && n == x.segments && !s.final }

// over reports whether the epoch or the segment that the worker is at is over, by the view.
func (a *turn) over() bool {
	return a.f.epoch != a.w.cur.cursor().epoch || a.f.current != a.w.segment
}

// read reads the next event of the segment.
func (a *turn) read() {
	x, s, n := a.exact, a.s, a.w.segment
	if x.waits && a.over() {
		a.do(ready, say("stops reading: the epoch or segment is over"), nil)
		return
	}
	shard, _ := x.unread(a.w.cur.cursor(), a.in.leases, a.p, n)
	switch {
	case x.damage && n == 1 && a.p == 1: // retries
	case !s.lacks(n, shard): // though its manifest may be gone
		a.do(holding, say("reads event %d.%d of segment %d", shard, a.w.cur.cursor().at(n, shard), n), nil)
	case x.trustEmpty:
		c := a.w.cur.cursor().in(n)
		c.done = true
		a.send(say("finds no chunk of shard %d of segment %d: there are no events", shard, n), txn{rec: c.pack()})
	case x.listAgain:
		a.do(ready, say("finds its chunk gone: lists again"), nil)
	}
}

// deliver sends the event in memory with the cursor behind it. It may do so late.
func (a *turn) deliver() {
	x, s, n := a.exact, a.s, a.w.segment
	if x.waits && a.over() {
		a.do(ready, say("drops its event: the epoch or segment is over"), nil)
	}
	c := a.w.cur.cursor().in(n)
	shard, _ := x.unread(c, a.in.leases, a.p, n)
	pos := c.pos[shard]
	c.pos[shard]++
	_, more := x.unread(c, a.in.leases, a.p, n)
	c.done = !more && !x.isOpen(s, n)
	switch event := x.event(n, shard, pos); {
	case !x.cursorApart:
		a.sendEvents(say("produces event %d.%d of segment %d with its cursor", shard, pos, n), event, c)
	case !a.w.behind:
		a.send(say("produces event %d.%d of segment %d", shard, pos, n), txn{events: event})
	default:
		a.send(say("produces the cursor behind event %d.%d of segment %d", shard, pos, n), txn{rec: c.pack()})
	}
}

// sendEvents sends events with the cursor behind them. The next event may be in the same transaction.
func (a *turn) sendEvents(l label, events uint16, c cursor) {
	x, n := a.exact, a.w.segment
	a.send(l, txn{events: events, rec: c.pack()})
	if c.done && x.apart {
		undone := c
		undone.done = false
		a.send(l, txn{events: events, rec: undone.pack()})
	}
	if shard, more := x.unread(c, a.in.leases, a.p, n); more && x.several {
		pos := c.pos[shard]
		c.pos[shard]++
		_, more = x.unread(c, a.in.leases, a.p, n)
		c.done = !more && !x.isOpen(a.s, n)
		l := say("produces the events up to %d.%d of segment %d", shard, pos, n)
		a.sendEvents(l, events|x.event(n, shard, pos), c)
	}
}
