//go:build !race

package protocol

type addScan func(progress bool, l label, do func(*scanState))

func (r scanRules) steps(s *scanState, to []step[scanState]) []step[scanState] {
	add := func(progress bool, l label, do func(*scanState)) {
		next := *s
		do(&next)
		to = append(to, step[scanState]{next, l, progress})
	}
	if s.clock < scanChanges {
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
		r.deliver(s, b, add)
	}
	r.keep(s, add)
	return to
}

func (s *scanState) put(b uint8, deleted bool) {
	s.clock++
	s.changed[s.clock] = change(b, deleted)
	s.blob[b] = s.clock * b2u(!deleted)
}

// keep is what the owner of lease 0 does with the frontier.
func (r scanRules) keep(s *scanState, add addScan) {
	all := s.listed == [scanBlobs]bool{true, true}
	switch {
	case s.phase == scanBefore:
		add(true, say("first frontier"), func(s *scanState) {
			s.phase, s.begun = scanListing, s.clock
			s.takeStart()
		})
	case s.phase == scanListing && all:
		add(true, say("the scan is complete"), func(s *scanState) {
			s.phase, s.ends = scanFeeding, max(s.served[0], s.served[1])
			if !r.startFirst {
				s.takeStart()
			}
		})
	case s.phase == scanFeeding && r.rescan:
		add(true, say("a re-scan is requested"), func(s *scanState) {
			s.phase, s.listed, s.served = scanHolding, [scanBlobs]bool{}, [scanBlobs]uint8{}
		})
	case s.phase == scanHolding && (s.acked == [scanBlobs]bool{true, true} || !r.acks):
		add(true, say("the re-scan lists"), func(s *scanState) { s.phase = scanRelist })
	case s.phase == scanCancelled && all:
		add(true, say("the re-scan is over"), func(s *scanState) {
			s.phase, s.acked = scanRepaired, [scanBlobs]bool{}
		})
	case s.phase == scanRelist && all:
		add(true, say("the re-scan is complete"), func(s *scanState) {
			s.phase, s.acked, s.right = scanRepaired, [scanBlobs]bool{}, max(s.served[0], s.served[1])
		})
	}
	if s.phase == scanRelist && s.rounds > 0 && (!r.sameRound || s.page == [scanBlobs]found{}) {
		add(true, say("the round is over"), func(s *scanState) {
			s.rounds--
			s.phase, s.acked = scanBetween, [scanBlobs]bool{}
		})
	}
	if s.phase == scanBetween {
		add(true, say("another round begins"), func(s *scanState) { s.phase = scanHolding })
	}
	if s.phase == scanRelist && r.cancels {
		add(true, say("the re-scan is cancelled"), func(s *scanState) {
			s.phase, s.listed = scanCancelled, [scanBlobs]bool{}
			if !r.drops {
				s.phase, s.acked = scanRepaired, [scanBlobs]bool{}
			}
		})
	}
	least := s.ends
	if !r.waitsTend {
		least = s.begun
	}
	delivers := s.phase == scanFeeding || s.phase == scanRepaired
	if at := s.complete(&s.read); delivers && at > s.marker && at >= least {
		add(true, say("a marker at %d", at), func(s *scanState) {
			s.marker = at
			for b := range uint8(scanBlobs) {
				repaired := r.gaps == 0 || s.phase == scanRepaired && at >= s.right
				s.wrong = s.wrong || repaired && s.table(b, at) != s.contentAt(b, at)
			}
		})
	}
}

// takeStart takes C0: the end of the feed.
func (s *scanState) takeStart() {
	s.from = s.fed
	s.read = s.from
	s.low = s.complete(&s.from)
}

// list is what the lease of a blob does.
func (r scanRules) list(s *scanState, b uint8, add addScan) {
	lists := s.phase == scanListing || s.phase == scanRelist
	if lists && !s.page[b].held && !s.listed[b] {
		add(true, say("the listing shows blob %d", b), func(s *scanState) {
			s.page[b] = found{held: true, at: s.clock, content: s.blob[b]}
		})
	}
	if p := s.page[b]; p.held {
		add(true, say("lease %d commits its page", b), func(s *scanState) {
			s.page[b] = found{}
			r.commit(s, b, p)
		})
	}
	if s.phase == scanRelist && s.page[b].held && s.rounds > 0 {
		add(false, say("the round ends before lease %d commits its page", b), func(s *scanState) {
			s.page[b], s.listed[b] = found{}, !r.positions
		})
	}
	if r.cancels && (s.phase == scanCancelled && !s.listed[b] || s.phase == scanRepaired && s.page[b].held) {
		add(true, say("lease %d reads that the re-scan is cancelled", b), func(s *scanState) {
			s.page[b], s.listed[b] = found{}, true
		})
	}
	if s.page[b].held && s.crashes > 0 {
		add(false, say("another instance takes lease %d from a paused one", b), func(s *scanState) {
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
	live := s.length[b] > 0 && s.records[b][s.length[b]-1].content != 0
	if p.content != 0 || r.sweeps && s.phase == scanRelist && live {
		s.write(b, updated, p.content, s.phase > scanListing)
	}
	if s.phase == scanRelist {
		s.missing[b] = false
	}
}

// deliver is what the lease with the shard of a blob does.
func (r scanRules) deliver(s *scanState, b uint8, add addScan) {
	lease := scanBlobs - 1 - b
	if s.phase == scanHolding && !s.acked[lease] {
		add(true, say("lease %d stops delivering", lease), func(s *scanState) { s.acked[lease] = true })
	}
	var may bool
	switch s.phase {
	case scanListing:
		may = !r.rowsFirst
	case scanFeeding, scanRepaired, scanBetween:
		may = true
	case scanHolding, scanRelist, scanCancelled:
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
