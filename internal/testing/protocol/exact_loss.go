package protocol

// missed is what an owner does that finds its segment or chunk gone.
func (a *turn) missed(n uint8, c cursor) {
	whole := a.s.removed >= n
	switch {
	case a.onGap == skip && (a.gapByCursor || !whole):
		c = c.in(n)
		c.done, c.gap = true, true
		a.send(say("finds the rest of segment %d gone: records that in its cursor", n), txn{rec: c.pack()})
	case a.onGap == fail && a.ownLoss && a.w.missing != n:
		a.doubt(n, n)
	case a.onGap == fail:
		a.die(n, 1<<a.p)
	}
}

// doubt gives the lease up, to look again after the next fence: segment gone was not found, so missing seems lost.
func (a *turn) doubt(gone, missing uint8) {
	l := say("finds segment %d gone: acquires the lease again before it believes that", gone)
	a.do(idle, l, func(_ *exactState, w *worker) { w.missing = missing })
}

// die ends the instance because history is lost: of segment n, for these leases. That must be true: the frontier is
// there, and what is missing is not in the hands of an owner that may still commit it.
func (a *turn) die(n uint8, leases uint8) {
	x, t := a.exact, *a.s
	f := t.frontier(t.n[0])
	owes := f.current == 0 && f.completed > 0 && t.removed >= f.completed // nobody knows what was behind it
	for p := range 2 {
		if leases>>p&1 == 0 {
			continue
		}
		owed := x.of(n)
		for pos := range x.perShard {
			owed &^= x.event(n, uint8(1-p), pos)
		}
		owed &^= t.events
		for k := range t.in {
			if w := &t.in[k].w[p]; int(t.holder[p]) == k+1 && w.segment == n &&
				(w.phase == holding || w.phase == sent) {
				owed &^= x.event(n, uint8(p), w.cur.cursor().at(n, uint8(p)))
			}
		}
		owes = owes || owed != 0
	}
	for k := t.from; k < n; k++ {
		owes = owes || t.events&x.of(k) != x.of(k)
	}
	switch {
	case f.current != n && f.current != 0 || f.completed >= n:
		t.breaking = staleLoss
	case !owes:
		t.breaking = falseLoss
	}
	t.in[a.i].end = lost
	t.leave(a.i)
	a.add(t, true, say("finds segment %d gone: ends with 'history is lost'", n))
}
