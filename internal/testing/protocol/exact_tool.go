package protocol

// The verbs seek and reset are a list of acts on the leases. Each act takes two values of exactState.tool: the even one
// is before it, the odd one waits for its commit.
const (
	takeZero   = iota // fence lease 0
	takeOne           // fence lease 1
	writeMove         // commit the frontier at lease 0
	writeVoid         // commit a cursor without position at lease 1
	removeOne         // tombstone the cursor of lease 1
	removeZero        // tombstone the frontier
)

const toolFailed = 99

// acts returns what the verb does.
func (x *exact) acts() []uint8 {
	switch {
	case x.tool == seek && x.phased:
		return []uint8{takeZero, writeMove}
	case x.tool == seek && x.voidFirst:
		return []uint8{takeOne, takeZero, writeVoid, writeMove}
	case x.tool == seek:
		return []uint8{takeOne, takeZero, writeMove, writeVoid}
	case x.tool == reset && x.phased && x.tidyLate:
		return []uint8{takeZero, writeMove, takeOne, removeOne}
	case x.tool == reset && x.phased:
		return []uint8{takeZero, writeMove}
	case x.tool == reset:
		return []uint8{takeOne, takeZero, writeMove, removeOne, removeZero}
	}
	return nil
}

// operator appends the next step of a verb.
func (x *exact) operator(s *exactState, to []step[exactState]) []step[exactState] {
	acts := x.acts()
	add := func(progress bool, l label, change func(*exactState)) {
		t := *s
		change(&t)
		to = append(to, step[exactState]{t, l, progress})
	}
	if s.tool == toolFailed && x.again && s.frontier(s.n[0]).epoch == 0 {
		add(true, say("the operator runs the verb again"), func(t *exactState) { t.tool = 0 })
	}
	if finished := int(s.tool) == 2*len(acts); finished && x.twice && s.frontier(s.n[0]).epoch == 1 {
		add(false, say("the operator runs the verb once more"), func(t *exactState) { t.tool = 0 })
	}
	if int(s.tool) >= 2*len(acts) {
		return to
	}
	act := acts[s.tool/2]
	p := 0
	if act == takeOne || act == writeVoid || act == removeOne {
		p = 1
	}
	fails := func(t *exactState) { t.tool = toolFailed }
	if s.tool > 0 {
		add(false, say("the verb crashes"), fails)
	}
	if s.tool%2 == 1 {
		if s.holder[p] != byTool || !s.txn[p].open {
			add(true, say("the verb is fenced and fails"), fails)
		}
		return to
	}
	if act == takeZero || act == takeOne {
		add(true, say("the verb fences lease %d", uint8(p)), func(t *exactState) {
			t.fence(p, byTool)
			t.tool += 2
		})
		return to
	}
	if s.holder[p] != byTool {
		add(true, say("the verb is fenced and fails"), fails)
		return to
	}
	if s.txn[p].open {
		return to
	}
	f := s.frontier(s.n[0])
	move := frontier{epoch: f.epoch + 1, moving: x.phased, reset: x.tool == reset, grown: f.grown}
	if x.tool == seek {
		move.completed, move.gaps, move.sought = x.target-1, f.gaps, true
	}
	var rec record
	switch act {
	case writeMove:
		rec = move.pack()
	case writeVoid:
		rec = cursor{epoch: f.epoch + uint8(bit(x.voidFirst, 0))}.pack()
	case removeOne:
		rec = cursor{}.pack()
	case removeZero:
		rec = frontier{reset: true, grown: f.grown}.pack()
	}
	add(true, rec.what().with("the verb writes to lease %d: ", uint8(p)), func(t *exactState) {
		t.produce(p, txn{ending: true, rec: rec})
		t.tool++
	})
	return to
}
