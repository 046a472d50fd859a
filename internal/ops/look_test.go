package ops

import (
	"testing"
	"time"

	"blobfeed/bridge"
	"blobfeed/source"
)

// At the end of an old feed, a lease that waits looks for more from time to time. That does not make it years late.
func TestALookIsNotLate(t *testing.T) {
	m, engine, clock := watching(t)
	engine.state = state(nil)
	m.Leased(bridge.LeasesAssigned, []int32{0})
	m.Committed(bridge.Commit{Lease: 0, Seen: clock.Add(-3 * time.Hour)})
	m.History(bridge.History{Newest: segment.Time()})
	m.Active(0, bridge.Waiting)
	m.Active(0, bridge.Working)
	if late := m.Snapshot().Lag.Bridge; late == nil || *late != 0 {
		t.Errorf("it looks: late by %v", late)
	}
	*clock = clock.Add(lookTime)
	if late := m.Snapshot().Lag.Bridge; late == nil || *late == 0 {
		t.Errorf("it works: late by %v", late)
	}
}

// What was seen of the feed before a seek does not count after it: the newest segment of a place behind the feed is the
// minute before that place, which is no segment.
func TestALookBeforeASeek(t *testing.T) {
	m, engine, _ := watching(t)
	place := source.Before(source.SegmentAt(segment.Time().Add(48 * time.Hour)))
	at := func(epoch int64, completed source.Segment) {
		engine.state = state(nil)
		f := engine.state.Frontier
		f.Completed, f.Current, f.Epoch, engine.state.Epoch = completed, source.Segment{}, epoch, epoch
	}
	at(1, place)
	m.Leased(bridge.LeasesAssigned, []int32{0})
	m.History(bridge.History{Headroom: 72 * time.Hour, Newest: place.Time()})
	at(2, segment)
	m.Lists(&listing{segments: []source.Segment{segment}})
	p, begins := m.Snapshot().Position, m.Segments(t.Context()).Begins
	if p.Newest != "" || p.Behind != nil || p.Headroom != nil || len(begins) != 1 {
		t.Errorf("newest segment %q, behind %v, headroom %v, tiles at %v", p.Newest, p.Behind, p.Headroom, begins)
	}
	later := source.SegmentAt(segment.Time().Add(time.Hour))
	m.History(bridge.History{Newest: later.Time()})
	if p := m.Snapshot().Position; p.Newest != later.String() || p.Behind == nil || *p.Behind != 3600 {
		t.Errorf("after another look: %+v", p)
	}
}
