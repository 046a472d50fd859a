package protocol

// operator is `bridge seek` to segment 1. It has no fence: it writes an owner record, and then a frontier. An instance
// that starts between them takes lease 0 back, and the frontier does not count.
func (x *least) operator(s *leastState, to []step[leastState]) []step[leastState] {
	add := func(progress bool, l label, change func(*leastState)) {
		t := *s
		change(&t)
		to = append(to, step[leastState]{t, l, progress})
	}
	put := func(t *leastState, d doc) { x.arrive(t, 0, request{kind: docRequest, doc: d.pack()}) }
	switch k := x.fold(s, s.n); {
	case s.tool == 0:
		add(false, say("seek acquires lease 0"), func(t *leastState) {
			t.acqs[0]++
			t.tool = t.acqs[0]
			put(t, doc{kind: ownerRecord, acq: t.tool, resolved: k.f.resolved})
		})
	case s.tool < 9 && (k.acq[0] == s.tool || x.raced):
		f := k.f
		if x.asProgram {
			f.sought, f.base = true, f.completed
		}
		f.acq, f.epoch, f.completed, f.current, f.moving = s.tool, f.epoch+1, 0, 0, true
		what := "seek writes and reports "
		if k.acq[0] != s.tool && x.counts {
			what = "seek fails after writing "
		}
		add(true, f.what().with(what), func(t *leastState) {
			t.tool = 9
			put(t, f)
			if k.acq[0] != s.tool && !x.counts && t.breaking == 0 {
				t.breaking = notMoved
			}
		})
	}
	return to
}
