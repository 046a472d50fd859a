package protocol

import (
	"fmt"
	"maps"
	"slices"
)

// ScanTrace is what the program did in a run with an account of two blobs, two leases and exactly once, in the order in
// which its brokers handled commits, and what became of the account and of its feed.
type ScanTrace struct {
	Lister, Sweeper [scanBlobs]uint8 // leases, by blob
	Events          []ScanEvent
}

// ScanChanges is how many changes of blobs a trace has at most.
const ScanChanges = scanChanges

// ScanEvent is one that others can see.
type ScanEvent struct {
	Kind    ScanEventKind
	Blob    uint8
	Deleted bool  // of Changed
	Lease   uint8 // of Worked, or the one that has to deliver what is Published

	// Of Turned: a frontier. Changes of the account are numbered from 1 on.
	From   [scanBlobs]uint8 // of the first one: events of each blob that it passes
	Scan   ScanDocument
	Marks  bool
	Marker uint8 // the changes up to the time of its markers

	// Of Worked: a lease. Its documents are of the scan that they name.
	ID           string
	Held, Over   int
	Listed, Done bool
	Records      []ScanRecord
}

// ScanDocument is the scan of a frontier.
type ScanDocument struct {
	ID                             string
	Initial, Sweep, Done, Canceled bool
	Phase                          string
	Round                          int
}

// ScanRecord is a record of a blob: the number of the change that it is the state after, 0 if it is a deletion.
type ScanRecord struct {
	Blob, Content uint8
	OfScan        bool
}

// ScanEventKind is what happens.
type ScanEventKind string

// The kinds of events.
const (
	Changed   ScanEventKind = "changes"       // a blob
	Published ScanEventKind = "has its event" // in the feed
	Turned    ScanEventKind = "the frontier"
	Worked    ScanEventKind = "lease"
)

func (e ScanEvent) String() string {
	switch e.Kind {
	case Turned:
		return fmt.Sprintf("frontier with %+v, marker %t at %d", e.Scan, e.Marks, e.Marker)
	case Worked:
		return fmt.Sprintf("lease %d commits %+v; held %d, over %d of scan %q, listed %t, done %t", e.Lease, e.Records,
			e.Held, e.Over, e.ID, e.Listed, e.Done)
	}
	return fmt.Sprintf("blob %d %s, deleted %t", e.Blob, e.Kind, e.Deleted)
}

// scanFollower keeps the states of the scan model that fit what was seen so far.
type scanFollower struct {
	rules  scanRules
	states map[scanState]bool
	scan   ScanDocument
	events [scanBlobs][]uint8 // the leases that have to deliver them
	read   [scanBlobs]uint8   // events that are delivered
}

// FollowScan returns an error with the first event that the protocol of scans does not allow, or if the topic is not
// the account in the end. It takes the steps of the scan model.
func FollowScan(t ScanTrace) error {
	f := scanFollower{
		rules: scanRules{
			startFirst: true, rowsFirst: true, waitsTend: true, storesTend: true, fence: true, lowRows: true,
			rescan: true, acks: true, holds: true, servedRows: true, sameRound: true, positions: true,
			cancels: true, drops: true, lags: true, changes: scanChanges,
			lister: t.Lister, sweeper: t.Sweeper,
		},
		states: map[scanState]bool{},
	}
	start := f.rules.start()
	f.add(f.states, start)
	for k, e := range t.Events {
		if err := f.follow(e); err != nil {
			return fmt.Errorf("event %d: %s: %w", k, e, err)
		}
	}
	for s := range f.states {
		last := s.phase == scanFeeding || s.phase == scanRepaired
		if last && s.read == s.fed && s.fed[0]+s.fed[1] == s.clock && s.table(0, s.clock) == s.blob[0] &&
			s.table(1, s.clock) == s.blob[1] {
			return nil
		}
	}
	return fmt.Errorf("the trace ends, and not all is delivered, or the topic is not the account")
}

func (f *scanFollower) follow(e ScanEvent) error {
	switch e.Kind {
	case Changed:
		return f.take(func(was, is *scanState) bool {
			return is.clock > was.clock && is.changed[is.clock] == change(e.Blob, e.Deleted)
		})
	case Published:
		f.events[e.Blob] = append(f.events[e.Blob], e.Lease)
		return f.take(func(was, is *scanState) bool { return is.fed[e.Blob] > was.fed[e.Blob] })
	case Turned:
		return f.turned(e)
	}
	return f.worked(e)
}

// turned follows a frontier: first the marker, which promises what is behind it, then the scan.
func (f *scanFollower) turned(e ScanEvent) error {
	if e.Marks {
		again := func(s *scanState) bool {
			return s.marker == e.Marker && e.Marker >= s.ends && f.rules.mayMark(s)
		}
		err := f.takeOr(again, func(was, is *scanState) bool {
			return is.marker > was.marker && is.marker == e.Marker
		})
		if err != nil {
			return fmt.Errorf("the marker: %w", err)
		}
	}
	was, is := f.scan, e.Scan
	f.scan = is
	if is == was {
		return nil
	}
	if is.ID != was.ID && was.ID != "" { // another one follows
		f.rules.sweeps = is.Sweep
		f.all(func(s *scanState) {
			if s.phase == scanRepaired {
				s.phase = scanFeeding // in which one may begin
			}
		})
	}
	if is.ID == was.ID && is.Canceled != was.Canceled {
		err := f.take(func(was, is *scanState) bool { return is.cancel && !was.cancel })
		if err != nil || !is.Done {
			return err
		}
	}
	phase := uint8(scanBetween)
	switch {
	case is.Initial && is.Done:
		phase = scanFeeding
	case is.Initial:
		phase = scanListing
	case is.Done:
		phase = scanRepaired
	case is.Phase == "holds":
		phase = scanHolding
	case is.Phase == "lists":
		phase = scanRelist
	}
	if was.ID == "" {
		f.read = e.From
	}
	round := map[bool]int{true: was.Round, false: 0}[is.ID == was.ID]
	if begins := phase == scanHolding || phase == scanListing; is.Round != round+int(b2u(begins)) {
		return fmt.Errorf("round %d follows round %d", is.Round, round)
	}
	return f.take(func(was, is *scanState) bool {
		return is.phase != was.phase && is.phase == phase && (was.phase != scanBefore || is.from == e.From)
	})
}

// worked follows a transaction of a lease: its records, and then what its cursor says.
func (f *scanFollower) worked(e ScanEvent) error {
	for _, r := range e.Records {
		b := r.Blob
		if n := f.read[b]; !r.OfScan && int(n) < len(f.events[b]) {
			f.rules.deliverer[b] = f.events[b][n]
			f.read[b]++
		}
		of := f.rules.deliverer
		step := func(was, is *scanState) bool { return is.read[b] > was.read[b] }
		switch {
		case r.OfScan && r.Content > 0:
			of = f.rules.lister
			step = func(was, is *scanState) bool { return was.page[b].held && !is.page[b].held }
		case r.OfScan:
			of = f.rules.sweeper
			step = func(was, is *scanState) bool { return was.head[b].held && !is.head[b].held }
		}
		if of[b] != e.Lease {
			return fmt.Errorf("that is a record of lease %d", of[b])
		}
		err := f.take(func(was, is *scanState) bool {
			return is.length[b] > was.length[b] && is.records[b][was.length[b]].content == r.Content && step(was, is)
		})
		if err != nil {
			return fmt.Errorf("the record %+v: %w", r, err)
		}
	}
	if e.ID != f.scan.ID || f.scan.Done {
		return nil
	}
	p := e.Lease
	for b := range uint8(scanBlobs) {
		if e.Listed && f.rules.lister[b] == p {
			err := f.takeOr(func(s *scanState) bool { return s.listed[b] }, func(was, is *scanState) bool {
				return is.listed[b] && !was.listed[b] && is.length[b] == was.length[b]
			})
			if err != nil {
				return fmt.Errorf("blob %d is listed: %w", b, err)
			}
		}
		if e.Done && f.scan.Sweep && f.rules.sweeper[b] == p {
			err := f.takeOr(func(s *scanState) bool { return s.judged[b] }, func(was, is *scanState) bool {
				return is.judged[b] && !was.judged[b] && is.length[b] == was.length[b]
			})
			if err != nil {
				return fmt.Errorf("blob %d is swept: %w", b, err)
			}
		}
	}
	if f.scan.Initial {
		return nil
	}
	if e.Held == f.scan.Round {
		err := f.takeOr(func(s *scanState) bool { return s.acked[p] || s.phase != scanHolding },
			func(was, is *scanState) bool { return is.acked[p] && !was.acked[p] })
		if err != nil {
			return fmt.Errorf("it holds: %w", err)
		}
	}
	if e.Over == f.scan.Round {
		err := f.takeOr(func(s *scanState) bool { return s.over[p] || s.phase != scanRelist },
			func(was, is *scanState) bool { return is.over[p] && !was.over[p] })
		if err != nil {
			return fmt.Errorf("its round is over: %w", err)
		}
	}
	return nil
}

// take takes the steps that lead to what was seen.
func (f *scanFollower) take(seen func(was, is *scanState) bool) error {
	return f.takeOr(func(*scanState) bool { return false }, seen)
}

// takeOr keeps the states in which it is so already, and takes the steps of all others.
func (f *scanFollower) takeOr(already func(*scanState) bool, seen func(was, is *scanState) bool) error {
	next, broken := map[scanState]bool{}, ""
	var steps []step[scanState]
	for s := range f.states {
		if already(&s) {
			next[s] = true
			continue
		}
		steps = f.rules.steps(&s, steps[:0])
		for k := range steps {
			t := &steps[k].to
			if !seen(&s, t) {
				continue
			}
			if what := f.rules.broken(t); what != "" {
				broken = what
				continue
			}
			f.add(next, *t)
		}
	}
	if len(next) == 0 {
		if broken != "" {
			return fmt.Errorf("in each of %d states it breaks %s", len(f.states), broken)
		}
		return fmt.Errorf("in none of %d states the protocol does this", len(f.states))
	}
	f.states = next
	return nil
}

// add adds a state, and all that may follow it unseen: what owners read of the account, and forget.
func (f *scanFollower) add(states map[scanState]bool, s scanState) {
	s.rounds = 1 // there may always be another one
	if states[s] {
		return
	}
	states[s] = true
	for b := range uint8(scanBlobs) {
		t := s
		t.page[b], t.head[b] = found{}, found{}
		f.add(states, t)
	}
	for _, step := range f.rules.steps(&s, nil) {
		t := step.to
		same := t
		same.page, same.head = s.page, s.head
		same.judged, same.missing, same.rounds = s.judged, s.missing, s.rounds
		if same == s {
			f.add(states, t)
		}
	}
}

// all changes every state.
func (f *scanFollower) all(change func(*scanState)) {
	states := slices.Collect(maps.Keys(f.states))
	f.states = map[scanState]bool{}
	for _, s := range states {
		change(&s)
		f.add(f.states, s)
	}
}
