package protocol

// keep is what the owner of lease 0 does with the frontier. If it reports false, the worker works on its own shards.
func (a *leastTurn) keep() bool {
	x, f := a.least, a.k.f
	switch {
	case f.kind == 0:
		a.store(doc{kind: frontierRecord})
		return true
	case a.k.back != 0:
		f.epoch++
		f.completed, f.current, f.moving, f.repaired = a.k.back-1, 0, true, a.k.foreign
		a.store(f)
		return true
	case f.moving && x.asProgram:
		return a.endMove()
	case f.owed && a.w.written != f.resolved:
		a.mark(f.resolved)
		return true
	case f.owed && x.asProgram: // names the next segment, or looks again what comes next
		f.owed = false
		a.store(f)
		if f.completed < x.segments {
			f.current = f.completed + 1
			a.store(f)
		}
		return true
	case f.moving:
		return a.endMove()
	case f.current == 0:
		n := f.completed + 1
		if n > x.segments {
			return true
		}
		if x.bundles && !x.isOpen(a.s, n) {
			for last := n; last <= x.segments && !x.isOpen(a.s, last); last++ {
				a.do(say("takes segments %d to %d into a bundle", n, last), func(_ *leastState, w *leastWorker) {
					w.phase, w.n, w.last, w.at, w.failed, w.epoch = taking, n, last, 0, false, f.epoch
				})
			}
			if !x.asProgram {
				return true
			}
		}
		f.current, f.owed = n, false
		a.store(f)
		return true
	}
	n := f.current
	for p := range 2 {
		if _, done := a.position(p, n); !done && x.owns(p) {
			return false
		}
	}
	if n > f.resolved && !x.intent && a.w.written < n {
		a.mark(n)
		return true
	}
	a.complete(n)
	return true
}

// endMove writes that the move is over, when every lease has entered its epoch. The program repeats the last marker
// before that, if an operator has moved it, and does not ask for lease 0: that is its own.
func (a *leastTurn) endMove() bool {
	x, f := a.least, a.k.f
	if x.asks && a.w.asked != f.epoch {
		a.do(say("asks for the ends of all partitions"), func(t *leastState, w *leastWorker) {
			w.phase, w.asked, w.until = asking, f.epoch, t.n
			if x.asProgram {
				w.until[0] = 0
			}
		})
		return true
	}
	switch {
	case x.enter && !a.entered(1):
		return x.asProgram || a.entered(0)
	case x.enter && !a.entered(0) && !x.asProgram:
		return false // its own lease enters, too
	case f.sought && f.resolved > 0 && a.w.written != f.resolved:
		a.mark(f.resolved)
		return true
	}
	f.moving, f.sought = false, false
	a.store(f)
	return true
}

// complete writes the frontier behind segment n. A segment below the last marker, which came again, has no marker. The
// program repeats the last one.
func (a *leastTurn) complete(n uint8) {
	f := a.k.f
	f.completed, f.current, f.owed = n, 0, a.intent && (n > f.resolved || a.asProgram)
	f.resolved = max(f.resolved, n)
	a.store(f)
}

func (a *leastTurn) mark(n uint8) {
	a.send(marking, request{kind: markerRequest, n: n}, say("sends marker %d", n))
}

// bundle writes the events of its segments, then the frontier. Before the rules, a marker after each of them.
func (a *leastTurn) bundle() {
	x := a.least
	if a.k.f.epoch != a.w.epoch && !x.slowClock {
		a.close(say("ends its bundle: the epoch is over"))
		return
	}
	per := 2 * x.perShard
	if x.oneKey {
		per = x.perShard
	}
	if a.w.n <= a.w.last && a.w.at < per {
		r := request{kind: eventRequest, key: 1 - a.w.at/x.perShard, n: a.w.n, pos: a.w.at % x.perShard}
		a.send(taking, r, say("sends event %d.%d of segment %d", r.key, r.pos, r.n))
		return
	}
	switch {
	case a.w.n <= a.w.last && !x.lastOnly:
		a.mark(max(a.w.n, a.k.f.resolved))
	case a.w.n < a.w.last:
		a.do(say("goes on with segment %d", a.w.n+1), func(_ *leastState, w *leastWorker) { w.n, w.at = w.n+1, 0 })
	case a.w.failed:
		a.close(say("flushes, and finds that a record was refused"))
	case !x.intent && a.w.written < a.w.last && a.w.last > a.k.f.resolved:
		a.mark(a.w.last)
	default:
		a.complete(a.w.last)
	}
}
