package ops

import (
	"testing"
	"time"

	"blobfeed/bridge"
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
