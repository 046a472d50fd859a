//go:build !race

package protocol

type addTorn func(progress bool, l label, do func(*torn))

func (r tornRules) broker(s *torn, add addTorn) {
	if s.coordinator != tornEnding {
		return
	}
	for p := range uint8(tornParts) {
		if s.unmarked&(1<<p) != 0 {
			add(true, say("the broker writes the end to partition %d", p), func(s *torn) { s.mark(p, r) })
		}
	}
	// Compaction is slower than an owner that discards.
	if s.dropped > 0 && s.apart && (s.phase == tornDelivering || s.phase == tornWaiting) {
		add(false, say("compaction removes the first of two owner records, and all views start again"), func(s *torn) {
			s.cursor, s.dropped, s.undone = s.dropped-1, 0, false
		})
	}
	if s.cuts > 0 && (r.partly || s.unmarked == s.written) && (r.aborts || s.commits) {
		add(false, say("the broker restarts and leaves out the other ends"), func(s *torn) {
			s.unmarked = 0
			s.cuts--
			s.complete()
		})
	}
}

// mark writes the end of the transaction to a partition: it decides all that is open there.
func (s *torn) mark(p uint8, r tornRules) {
	if p == stateP {
		s.judge(r)
	}
	for e, n := range s.open[p] {
		if s.commits {
			s.visible[p][e] += n
		}
	}
	s.open[p] = [3]uint8{}
	if s.unmarked &^= 1 << p; s.unmarked == 0 {
		s.complete()
	}
}

// judge is what views make of the documents when an end is written behind them.
func (s *torn) judge(r tornRules) {
	if s.commits {
		if !r.sideBySide && s.before > 0 {
			s.cursor, s.before = s.before-1, 0
		}
		switch {
		case s.before > 0:
			s.undone, s.dropped, s.apart = true, s.before, false
		case s.last == 0:
			s.apart = true
		}
		if s.last > 0 {
			s.cursor, s.undone, s.dropped = s.last-1, false, 0
		}
	}
	s.last, s.before = 0, 0
}

// complete begins another epoch. Documents that are open still are of the one before.
func (s *torn) complete() {
	s.coordinator, s.written = tornIdle, 0
	s.before, s.last = max(s.before, s.last), 0
}

func (s *torn) end(commits bool) {
	s.coordinator, s.commits, s.unmarked = tornEnding, commits, s.written
	if s.written == 0 {
		s.complete()
	}
}

func (s *torn) write(p uint8) { s.coordinator, s.written = tornOngoing, s.written|1<<p }

// rewrite commits the cursor that counts.
func (s *torn) rewrite() {
	s.write(stateP)
	s.last = s.cursor + 1
	s.end(true)
}

// read reports whether views have read the last commit. Else they wait at the last stable offset.
func (s *torn) read() bool { return s.coordinator == tornIdle && s.last == 0 && s.before == 0 }
