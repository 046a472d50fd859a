package protocol

// keep is what the holder of lease 0 does with the frontier. If it reports false, the worker works on its own shards.
func (a *turn) keep() bool {
	x, s, f := a.exact, a.s, a.f
	switch {
	case f.moving:
		if x.fenceOthers {
			a.do(fencedAll, say("finds an unfinished move: fences lease 1"), func(t *exactState, _ *worker) {
				t.fence(1, byFence)
			})
		} else {
			a.keeperMoved()
		}
		return true
	case f.reset:
		a.keeperMoved()
		return true
	case f.sought && !f.told:
		f.told = true
		a.send(say("writes the marker of the seek"), txn{sought: true, rec: f.pack()})
		return true
	case f.current == 0:
		a.next()
		return true
	}
	n := f.current
	gone := s.removed >= n
	all, gap := true, false
	for p := range int(a.in.leases) {
		if x.owns(a.in.leases, p, n) {
			c := x.cursor(s, a.in.read, p)
			all = all && c.finished(n) && c.epoch == f.epoch
			gap = gap || c.gap
		}
	}
	if (all || x.noBarrier && !x.isOpen(s, n)) && (!gone || x.completeByCursors) {
		f.completed, f.current, f.sought, f.told = n, x.after(s, n), false, false
		if gap {
			f.gaps |= 1 << (n - 1)
		}
		if gone && gap && f.current > 0 { // the gap ends where the next one begins
			named := f
			for k := n + 1; k < named.current; k++ {
				named.gaps |= 1 << (k - 1)
				named.completed = k
			}
			a.send(say("completes segment %d, with a gap up to %d", n, f.current),
				txn{markers: 1 << n, rec: named.pack()})
		}
		if x.either && !gone && f.current > 0 {
			a.send(say("completes segment %d, and names %d", n, f.current), txn{markers: 1 << n, rec: f.pack()})
		}
		if gone || x.bundles {
			f.current = 0 // it looks again what comes next
		}
		a.send(say("completes segment %d", n), txn{markers: 1 << n, rec: f.pack()})
		return true
	}
	if !gone {
		return false
	}
	switch {
	case x.onGap == fail && x.completeByCursors && (a.w.cur.cursor().finished(n) || !x.owns(a.in.leases, 0, n)):
		return false // the lease that misses something ends the instance itself
	case x.onGap == fail && x.ownLoss && a.w.missing != n:
		a.doubt(n, n)
	case x.onGap == fail && x.completeByCursors:
		a.die(n, 1)
	case x.onGap == fail:
		a.die(n, 3)
	case x.gapByCursor:
		return false
	default: // the jump
		a.send(say("moves the frontier past the gap at segment %d", n), txn{rec: x.past(s, f, n).pack()})
	}
	return !x.known // else it may go on
}

// next names the segment after the completed one, or takes it into a bundle. The next one in a listing is that only if
// the completed one is still there: retention removes the oldest first.
func (a *turn) next() {
	x, s, f := a.exact, a.s, a.f
	if a.w.ahead > 0 && a.w.last == f.completed { // what it has seen is still in memory
		for last := a.w.last + 1; last <= a.w.ahead; last++ {
			a.do(bundling, say("takes up segment %d for a bundle", last), func(_ *exactState, w *worker) {
				w.segment, w.last = w.last+1, last
			})
		}
	}
	n := x.after(s, f.completed)
	if n == 0 {
		return
	}
	certain := f.sought || f.completed == 0 || s.removed < f.completed || x.adjoins && n == f.completed+1
	switch {
	case certain || x.trustListing:
		if x.bundles && !x.isOpen(s, n) {
			a.do(listing, say("begins a bundle"), nil)
			if !x.either {
				return
			}
		}
		f.current = n
		a.send(say("names segment %d", n), txn{rec: f.pack()})
	case x.onGap == skip: // nothing is in flight
		a.send(say("records a gap before segment %d, and names it", n), txn{rec: x.past(s, f, f.completed).pack()})
	case x.ownLoss && a.w.missing != f.completed+1:
		a.doubt(f.completed, f.completed+1)
	default:
		a.die(f.completed+1, 3)
	}
}

// keeperLists lists the segments of a bundle, some time after that look.
func (a *turn) keeperLists() {
	x, n := a.exact, a.after(a.s, a.f.completed)
	if n == 0 || x.isOpen(a.s, n) {
		a.do(ready, say("finds no segment for a bundle"), nil)
		return
	}
	for last := n; last <= x.segments && !x.isOpen(a.s, last); last++ {
		a.do(bundling, say("lists segments %d to %d for a bundle", n, last), func(_ *exactState, w *worker) {
			w.segment, w.last, w.ahead = n, last, 0
		})
	}
}

// past is the frontier at the oldest segment there is, with everything between n and that recorded as lost.
func (x *exact) past(s *exactState, f frontier, n uint8) frontier {
	if n > f.completed {
		f.gaps |= 1 << (n - 1)
	}
	f.completed, f.current = n, x.after(s, n)
	for k := n + 1; k < f.current; k++ {
		f.gaps |= 1 << (k - 1)
		f.completed = k
	}
	return f
}

// keeperBundle reads the listed segments, looks whether the first is still there, and commits all of it.
func (a *turn) keeperBundle() {
	x, s, f := a.exact, a.s, a.f
	if x.waits && (f.epoch != a.w.cur.cursor().epoch || f.current != 0) {
		a.do(ready, say("drops the bundle: the epoch is over"), nil)
	}
	early := a.w.ahead > 0 // it was there when the bundle before was written
	if s.removed >= a.w.segment && !early && !x.trustBundle {
		a.do(ready, say("finds the first segment of the bundle gone"), nil)
		return
	}
	follows := early || f.sought || f.completed == 0 || s.removed < f.completed || a.w.segment == f.completed+1
	if !follows && !x.trustOrder {
		a.do(ready, say("finds the completed segment gone: something before the bundle may be lost"), nil)
		return
	}
	tx := txn{}
	for n := a.w.segment; n <= a.w.last; n++ {
		if s.removed < n || early { // else its listing shows no chunk
			tx.events |= x.of(n)
		}
		tx.markers |= 1 << n
	}
	// The frontier is the one in memory: while it moves the bridge, nobody else writes it.
	f.completed, f.current, f.sought, f.told = a.w.last, 0, false, false
	if f.epoch != a.w.cur.cursor().epoch {
		return
	}
	tx.rec = f.pack()
	a.sendBundle(tx)
	phase := uint8(idle)
	if x.retryFlush {
		phase = hanging
	}
	a.fault(phase, say("has a record of the bundle refused: its producer fails"), func(t *exactState, _ *worker) {
		t.txn[0] = txn{}
	})
}

// sendBundle sends a bundle. Meanwhile the keeper may look whether the segments behind it are there, which were listed
// by then: that look holds for the next bundle.
func (a *turn) sendBundle(tx txn) {
	s, first, last := a.s, a.w.segment, a.w.last
	a.send(say("produces a bundle of segments %d to %d", first, last), tx)
	there := s.removed < last || a.adjoins && s.removed == last
	for n := last + 1; a.either && there && n <= a.segments && !a.isOpen(s, n); n++ {
		a.sendAhead(say("produces a bundle of segments %d to %d, and looks up to %d", first, last, n), tx, n)
	}
}

// keeperMoved ends a move: nobody works on what was before it any more.
func (a *turn) keeperMoved() {
	f := a.f
	if !f.moving && !f.reset {
		a.do(ready, say("finds nothing to move any more"), nil)
		return
	}
	if f.reset {
		a.send(say("writes the first frontier"),
			txn{sought: true, rec: frontier{epoch: f.epoch, grown: f.grown}.pack()})
		return
	}
	f.moving, f.told = false, true
	a.send(say("writes the marker of the seek"), txn{sought: true, rec: f.pack()})
}
