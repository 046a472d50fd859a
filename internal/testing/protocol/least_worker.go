package protocol

// leastTurn is the worker of lease p of an instance, and what it may do in a state.
type leastTurn struct {
	*least
	s    *leastState
	i, p int
	w    leastWorker
	k    known // by the view of the instance
	to   []step[leastState]
}

func (a *leastTurn) add(t leastState, progress bool, l label) {
	a.to = append(a.to, step[leastState]{t, l.with("%c/%d ", name(a.i), uint8(a.p)), progress})
}

func (a *leastTurn) do(l label, change func(*leastState, *leastWorker)) {
	t := *a.s
	w := &t.w[a.i][a.p]
	change(&t, w)
	if w.phase == off {
		a.abandon(&t, a.p, a.w)
		*w = leastWorker{}
	}
	a.add(t, true, l)
}

// send puts a request on the wire. An owner whose session may be over sends nothing.
func (a *leastTurn) send(phase uint8, r request, l label) {
	if a.allowed(r) {
		a.do(l, func(_ *leastState, w *leastWorker) { w.phase, w.req, w.onWire = phase, r, true })
	}
}

func (a *leastTurn) allowed(r request) bool {
	return !a.w.expired || !a.age || a.slowClock && r.kind != markerRequest
}

func (a *leastTurn) store(d doc) {
	d.acq = a.w.acq
	if a.asProgram && d.kind == frontierRecord {
		d.base = a.k.f.completed
	}
	d.resolved = max(d.resolved, a.k.f.resolved)
	a.send(storing, request{kind: docRequest, doc: d.pack()}, d.what().with("sends "))
}

// rest ends a wait for the view.
func (a *leastTurn) rest(l label) {
	a.do(l, func(_ *leastState, w *leastWorker) {
		if w.phase == viewing && a.asProgram {
			w.epoch = a.k.f.epoch
		}
		w.phase, w.until = atRest, [2]uint8{}
	})
}

// close gives the lease up. After a session that expired nobody waits for answers.
func (a *leastTurn) close(l label) {
	if !a.w.onWire || !a.awaits || a.w.expired {
		a.do(l, func(_ *leastState, w *leastWorker) { w.phase = off })
	}
}

func (a *leastTurn) steps() {
	x, s, i, p := a.least, a.s, a.i, a.p
	mine := s.group[p] == uint8(i+1)
	busy := a.w.phase == data || a.w.phase == storing || a.w.phase == taking
	if a.w.phase != off && !(x.slowClock && busy) {
		if a.w.expired {
			a.close(say("learns that its lease is revoked"))
		}
		if other := a.k.acq[p] != a.w.acq; other && a.w.phase > viewing {
			a.close(say("sees that another has acquired the lease"))
		}
		if a.asProgram && a.w.phase > viewing && a.k.f.epoch != a.w.epoch {
			a.close(say("sees a new epoch, and acquires the lease again"))
			if a.w.phase == atRest {
				return
			}
		}
	}
	if a.w.onWire {
		a.onWire()
		return
	}
	switch a.w.phase {
	case off:
		if mine && (p == 0 || a.hasWork()) {
			a.do(say("acquires the lease"), func(t *leastState, w *leastWorker) {
				t.acqs[p]++
				*w = leastWorker{phase: owning, acq: t.acqs[p], onWire: true}
				owner := doc{kind: ownerRecord, acq: w.acq, resolved: a.k.f.resolved}
				if x.asProgram {
					owner.resolved = 0
				}
				w.req = request{kind: docRequest, doc: owner.pack()}
			})
		}
	case viewing:
		if s.read[i][p] >= a.w.until[1] && s.read[i][0] >= a.w.until[0] {
			a.rest(say("holds the lease and reads its cursor"))
		}
	case settling:
		if s.read[i][p] >= a.w.until[1] {
			a.rest(say("has read what it wrote"))
		}
	case asking:
		if s.read[i][0] >= a.w.until[0] && s.read[i][1] >= a.w.until[1] {
			a.rest(say("has read them"))
		}
	case atRest:
		if a.k.acq[p] == a.w.acq && (p != 0 || !a.keep()) {
			a.work()
		}
	case data:
		a.deliver()
	case taking:
		a.bundle()
	case owning, storing, marking: // it was dropped
		if a.allowed(a.w.req) {
			a.do(say("sends its request again"), func(_ *leastState, w *leastWorker) { w.onWire = true })
		}
	}
}

// onWire is what becomes of a request.
func (a *leastTurn) onWire() {
	x, s, p := a.least, a.s, a.p
	what := say("has its record acknowledged")
	switch a.w.req.kind {
	case eventRequest:
		what = say("has event %d.%d of segment %d acknowledged", a.w.req.key, a.w.req.pos, a.w.req.n)
	case markerRequest:
		what = say("has marker %d acknowledged", a.w.req.n)
	case docRequest:
		what = a.w.req.doc.doc().what().with("has a record acknowledged: ")
	}
	a.do(what, func(t *leastState, w *leastWorker) {
		x.arrive(t, p, w.req)
		w.onWire = false
		switch w.phase {
		case owning:
			w.phase, w.until[1] = viewing, t.n[p]
			if x.known {
				w.until[0] = t.n[0]
			}
		case storing:
			w.phase, w.until[1] = settling, t.n[p]
			if x.asProgram {
				w.written = 0 // what is owed now is another marker, or the same once more
			}
		case marking:
			w.written = w.req.n
			w.phase = atRest
			if !x.lastOnly && w.last != 0 {
				w.phase = taking // on with the bundle
				w.n, w.at = w.n+1, 0
			}
		default:
			w.at++
		}
		w.req = request{}
	})
	if x.refused && s.faults > 0 && a.w.req.kind == eventRequest {
		l := say("has event %d.%d of segment %d refused", a.w.req.key, a.w.req.pos, a.w.req.n)
		a.do(l, func(t *leastState, w *leastWorker) {
			t.faults--
			w.onWire, w.failed = false, true
			w.at++
			w.req = request{}
			if x.failFast {
				w.phase = off
			}
		})
		a.to[len(a.to)-1].progress = false
	}
}

// position is where lease p is in segment n, by the view.
func (a *leastTurn) position(p int, n uint8) (pos uint8, done bool) {
	if c := a.k.cursor[p]; c.kind != 0 && c.epoch == a.k.f.epoch && c.segment == n {
		return c.pos, c.done
	}
	return 0, false
}

// entered reports whether lease p has nothing to say of an earlier epoch.
func (a *leastTurn) entered(p int) bool {
	return a.k.acq[p] == 0 || a.k.cursor[p].kind != 0 && a.k.cursor[p].epoch >= a.k.f.epoch
}

func (a *leastTurn) hasWork() bool {
	f := a.k.f
	if f.moving && !a.entered(a.p) {
		return true
	}
	_, done := a.position(a.p, f.current)
	return f.current != 0 && !done && a.owns(a.p)
}

// work delivers the current segment.
func (a *leastTurn) work() {
	f, c := a.k.f, a.k.cursor[a.p]
	if f.moving && !a.entered(a.p) && a.enter {
		d := doc{kind: cursorRecord, epoch: f.epoch, segment: f.completed, done: true}
		if a.asProgram {
			d.segment, d.done = 0, false
		}
		a.store(d)
		return
	}
	n := f.current
	pos, done := a.position(a.p, n)
	if n == 0 || done || !a.owns(a.p) || c.kind != 0 && (c.epoch > f.epoch || c.epoch == f.epoch && c.segment > n) {
		return
	}
	a.do(say("starts segment %d at event %d", n, pos), func(_ *leastState, w *leastWorker) {
		w.phase, w.n, w.at, w.failed, w.epoch = data, n, pos, false, f.epoch
	})
}

// deliver writes the next event, or the cursor behind those that are written.
func (a *leastTurn) deliver() {
	f := a.k.f
	pos, _ := a.position(a.p, a.w.n)
	done := a.w.at == a.perShard && !a.isOpen(a.s, a.w.n)
	if !a.slowClock && (f.current != a.w.n || f.epoch != a.w.epoch) {
		a.close(say("ends its work: the segment is over"))
	}
	if a.w.at < a.perShard {
		r := request{kind: eventRequest, key: uint8(a.p), n: a.w.n, pos: a.w.at}
		a.send(data, r, say("sends event %d.%d of segment %d", r.key, r.pos, r.n))
	}
	switch {
	case a.w.failed && a.w.at == a.perShard:
		a.close(say("flushes, and finds that a record was refused"))
	case !a.w.failed && (a.w.at > pos || done):
		d := doc{kind: cursorRecord, epoch: a.w.epoch, segment: a.w.n, pos: a.w.at, done: done}
		a.store(d)
		if done && a.w.at > pos && a.asProgram { // that the lease is done may be a record of its own
			d.done = false
			a.store(d)
		}
	}
}
