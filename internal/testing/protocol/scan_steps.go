package protocol

type addScan func(progress bool, l label, do func(*scanState))

func (r scanRules) steps(s *scanState, to []step[scanState]) []step[scanState] {
	add := func(progress bool, l label, do func(*scanState)) {
		next := *s
		do(&next)
		to = append(to, step[scanState]{next, l, progress})
	}
	if s.clock < r.changes {
		for b := range uint8(scanBlobs) {
			add(true, say("blob %d is written", b), func(s *scanState) { s.put(b, false) })
			if s.blob[b] != 0 {
				add(true, say("blob %d is deleted", b), func(s *scanState) { s.put(b, true) })
			}
		}
	}
	for b := range uint8(scanBlobs) {
		if s.fed[b] < s.events(b, s.clock) {
			add(true, say("the feed has event %d of blob %d", s.fed[b], b), func(s *scanState) { s.fed[b]++ })
		}
		r.list(s, b, add)
		r.judge(s, b, add)
		r.deliver(s, b, add)
	}
	for lease := range uint8(scanBlobs) {
		if s.phase == scanHolding && !s.acked[lease] {
			add(true, say("lease %d stops delivering", lease), func(s *scanState) { s.acked[lease] = true })
		}
		r.endRound(s, lease, add)
	}
	r.keep(s, add)
	r.turn(s, add)
	r.mark(s, add)
	return to
}

func (s *scanState) put(b uint8, deleted bool) {
	s.clock++
	s.changed[s.clock] = change(b, deleted)
	s.blob[b] = s.clock * b2u(!deleted)
}

func both(of [scanBlobs]bool) bool { return of == [scanBlobs]bool{true, true} }

// keep is what the owner of lease 0 does with the frontier for the first scan, and to begin another one.
func (r scanRules) keep(s *scanState, add addScan) {
	switch {
	case s.phase == scanBefore:
		least := s.fed
		if r.lags {
			least = [scanBlobs]uint8{}
		}
		for first := least[0]; first <= s.fed[0]; first++ {
			for second := least[1]; second <= s.fed[1]; second++ {
				add(true, say("first frontier, at events %d and %d", first, second), func(s *scanState) {
					s.phase, s.begun = scanListing, s.clock
					s.takeStart([scanBlobs]uint8{first, second})
				})
			}
		}
	case s.phase == scanListing && both(s.listed):
		add(true, say("the scan is complete"), func(s *scanState) {
			s.phase, s.ends = scanFeeding, max(s.served[0], s.served[1])
			if !r.startFirst {
				s.takeStart(s.fed)
			}
		})
	case s.phase == scanFeeding && r.rescan:
		add(true, say("a re-scan is requested"), func(s *scanState) {
			s.phase, s.served = scanHolding, [scanBlobs]uint8{}
			s.listed, s.judged = [scanBlobs]bool{}, [scanBlobs]bool{}
		})
	}
}

// turn is what the owner of lease 0 does with the rounds of a re-scan.
func (r scanRules) turn(s *scanState, add addScan) {
	held, over := both(s.acked) || !r.acks, r.isOver(s, 0) && r.isOver(s, 1) || !r.sameRound
	end := func(s *scanState) {
		s.phase, s.acked, s.over, s.cancel = scanRepaired, [scanBlobs]bool{}, [scanBlobs]bool{}, false
	}
	under := s.phase == scanHolding || s.phase == scanRelist || s.phase == scanBetween
	if under && r.cancels && !s.cancel {
		add(true, say("the re-scan is cancelled"), func(s *scanState) {
			if s.cancel = true; !r.drops {
				end(s)
			}
		})
	}
	done := both(s.listed) && (!r.sweeps || both(s.judged))
	switch {
	case !under:
	case s.cancel && (s.phase == scanHolding && held || s.phase == scanRelist && over || s.phase == scanBetween):
		add(true, say("the re-scan is over, cancelled"), end)
	case s.cancel:
	case s.phase == scanHolding && held:
		add(true, say("the re-scan lists"), func(s *scanState) { s.phase, s.over = scanRelist, [scanBlobs]bool{} })
	case s.phase == scanBetween:
		add(true, say("another round begins"), func(s *scanState) { s.phase = scanHolding })
	case s.phase == scanRelist && over && done:
		add(true, say("the re-scan is complete"), func(s *scanState) {
			end(s)
			if s.right = max(s.served[0], s.served[1]); r.sweeps { // what it leaves to the feed is of now at the latest
				s.right = s.clock
			}
		})
	case s.phase == scanRelist && over && (s.rounds > 0 || both(s.listed)): // the sweep needs a round of its own
		add(true, say("the round is over"), func(s *scanState) {
			s.rounds -= min(s.rounds, b2u(!both(s.listed)))
			s.phase, s.acked = scanBetween, [scanBlobs]bool{}
		})
	}
}

// mark writes a marker.
func (r scanRules) mark(s *scanState, add addScan) {
	least := s.ends
	if !r.waitsTend {
		least = s.begun
	}
	if !r.mayMark(s) {
		return
	}
	most := s.complete(&s.read)
	least = max(least, s.marker+1)
	if !r.lags {
		least = max(least, most)
	}
	for at := least; at <= most; at++ {
		add(true, say("a marker at %d", at), func(s *scanState) {
			s.marker = at
			for b := range uint8(scanBlobs) {
				repaired := r.gaps == 0 || s.phase == scanRepaired && at >= s.right
				s.wrong = s.wrong || repaired && s.table(b, at) != s.contentAt(b, at)
			}
		})
	}
}

// mayMark reports whether segments are completed in a phase.
func (r scanRules) mayMark(s *scanState) bool {
	return s.phase == scanFeeding || s.phase == scanBetween || s.phase == scanRepaired
}

// takeStart takes C0.
func (s *scanState) takeStart(from [scanBlobs]uint8) {
	s.from, s.read = from, from
	s.low = s.complete(&s.from)
}

// lists reports whether a lease may ask the account.
func (r scanRules) lists(s *scanState, lease uint8) bool {
	return s.phase == scanRelist && !s.over[lease]
}

// list is what the lease does that lists a blob.
func (r scanRules) list(s *scanState, b uint8, add addScan) {
	if (s.phase == scanListing || r.lists(s, r.lister[b])) && !s.page[b].held && !s.listed[b] {
		add(true, say("the listing shows blob %d", b), func(s *scanState) {
			s.page[b] = found{held: true, at: s.clock, content: s.blob[b]}
		})
	}
	if p := s.page[b]; p.held {
		add(true, say("lease %d commits its page", r.lister[b]), func(s *scanState) {
			s.page[b] = found{}
			r.commit(s, b, p)
		})
	}
	if s.phase == scanRepaired && s.page[b].held {
		add(true, say("lease %d reads that the re-scan is cancelled", r.lister[b]), func(s *scanState) {
			s.page[b], s.listed[b] = found{}, true
		})
	}
	if s.page[b].held && s.crashes > 0 && !r.reads {
		add(false, say("another instance takes lease %d from a paused one", r.lister[b]), func(s *scanState) {
			s.crashes--
			s.paused[b], s.page[b] = s.page[b], found{}
			if !r.storesTend {
				s.served[b] = 0
			}
		})
	}
	if p := s.paused[b]; p.held && !r.fence {
		add(true, say("the paused instance commits its page of blob %d", b), func(s *scanState) {
			s.paused[b] = found{}
			r.commit(s, b, p)
		})
	}
}

// judge is what the lease does that sweeps the partition of a blob, when everything is listed.
func (r scanRules) judge(s *scanState, b uint8, add addScan) {
	lease := r.sweeper[b]
	if h := s.head[b]; h.held {
		add(true, say("lease %d commits what the account says of blob %d", lease, b), func(s *scanState) {
			s.head[b], s.missing[b] = found{}, false
			s.judged[b], s.known[b] = !r.reads, false
			if h.content == 0 {
				s.twice = s.twice || s.swept[b] > 0 && s.swept[b] == s.length[b]
				s.write(b, h.at, 0, true)
				s.swept[b] = s.length[b] * b2u(r.reads)
			}
		})
		return
	}
	if r.reads && b == 0 {
		r.suspect(s, lease, add)
	}
	if !r.sweeps || s.judged[b] || !both(s.listed) || !r.lists(s, lease) {
		return
	}
	if r.reads && !s.known[b] {
		return
	}
	// That it was a suspect was found earlier: its deletion may have come since.
	add(true, say("lease %d asks for blob %d", lease, b), func(s *scanState) {
		s.head[b] = found{held: true, at: s.clock, content: s.blob[b]}
	})
	if r.reads {
		return
	}
	if !s.lives(b) || r.lags { // behind the first row of a partition, its keys are no suspects
		add(true, say("blob %d is no suspect", b), func(s *scanState) { s.judged[b], s.missing[b] = true, false })
	}
}

// lives reports whether the topic has a blob.
func (s *scanState) lives(b uint8) bool {
	return s.length[b] > 0 && s.records[b][s.length[b]-1].content != 0
}

// suspect is what the lease that sweeps reads in the topic, and what becomes of it when the lease has another owner and
// comes back.
func (r scanRules) suspect(s *scanState, lease uint8, add addScan) {
	if s.phase < scanHolding || s.phase == scanRepaired || !both(s.listed) || both(s.judged) {
		return
	}
	switch {
	case !s.hasRead:
		add(true, say("lease %d reads which keys live", lease), func(s *scanState) {
			s.known, s.hasRead = [scanBlobs]bool{s.lives(0), s.lives(1)}, true
		})
	case s.known == [scanBlobs]bool{} && r.lists(s, lease):
		add(true, say("lease %d commits that no suspect is left", lease), func(s *scanState) {
			s.judged, s.missing = [scanBlobs]bool{true, true}, [scanBlobs]bool{}
		})
	}
	if s.crashes == 0 {
		return
	}
	add(false, say("lease %d has another owner", lease), func(s *scanState) {
		s.crashes--
		mine, had := s.known, s.hasRead
		s.known, s.hasRead, s.head = s.kept, s.keeps, [scanBlobs]found{}
		s.kept, s.keeps = mine, had
		if r.rereads {
			s.known, s.hasRead, s.kept, s.keeps = [scanBlobs]bool{}, false, [scanBlobs]bool{}, false
		}
	})
}

// done reports whether nothing is left to a lease in a round.
func (r scanRules) done(s *scanState, lease uint8) bool {
	for b := range uint8(scanBlobs) {
		lists := r.lister[b] == lease && !s.listed[b]
		sweeps := r.sweeper[b] == lease && r.sweeps && both(s.listed) && !s.judged[b]
		if lists || sweeps {
			return false
		}
	}
	return true
}

// isOver reports whether a lease has ended its round. Whether it says so by a step of its own matters to traces only.
func (r scanRules) isOver(s *scanState, lease uint8) bool {
	return s.over[lease] || !r.lags && r.done(s, lease)
}

// endRound is the end of a lease's work in a round. What it has in memory is dropped.
func (r scanRules) endRound(s *scanState, lease uint8, add addScan) {
	done := r.done(s, lease)
	if !r.lists(s, lease) || done && !r.lags || !done && s.rounds == 0 && !s.cancel {
		return
	}
	add(done || s.cancel, say("lease %d ends its round", lease), func(s *scanState) {
		s.over[lease] = true
		for b := range uint8(scanBlobs) {
			if r.lister[b] == lease && s.page[b].held {
				s.page[b], s.listed[b] = found{}, !r.positions
			}
			if r.sweeper[b] == lease {
				s.head[b] = found{}
			}
		}
	})
}

// commit writes what was found, with the cursor.
func (r scanRules) commit(s *scanState, b uint8, p found) {
	s.listed[b] = true
	if r.storesTend {
		s.served[b] = max(s.served[b], p.at)
	}
	updated := s.low
	switch {
	case s.phase > scanListing && r.servedRows:
		updated = p.at
	case s.phase == scanListing && !r.lowRows:
		updated = s.begun
	}
	if p.content != 0 {
		s.write(b, updated, p.content, s.phase > scanListing)
	}
	if s.phase == scanRelist && (p.content != 0 || !r.sweeps) {
		s.missing[b] = false
	}
}

// deliver is what the lease with the shard of a blob does.
func (r scanRules) deliver(s *scanState, b uint8, add addScan) {
	lease := r.deliverer[b]
	var may bool
	switch s.phase {
	case scanListing:
		may = !r.rowsFirst
	case scanFeeding, scanRepaired, scanBetween:
		may = true
	case scanHolding, scanRelist:
		may = !s.acked[lease] || !r.holds
	}
	if !may || s.read[b] >= s.fed[b] {
		return
	}
	at, content := s.event(b, s.read[b])
	add(true, say("event %d of blob %d is delivered", s.read[b], b), func(s *scanState) {
		s.read[b]++
		s.write(b, at, content, false)
	})
	if s.gaps > 0 && s.phase == scanFeeding {
		add(false, say("event %d of blob %d is lost", s.read[b], b), func(s *scanState) {
			s.gaps--
			s.read[b]++
			s.missing[b] = true
		})
	}
}
