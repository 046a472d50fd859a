package status

import (
	"strings"
	"testing"
	"time"

	"blobfeed/envelope"
	"blobfeed/internal/history"
	"blobfeed/offsets"
	"blobfeed/source"
)

// A position that the feed does not have is degraded, not up to date, and one on the way there is neither.
func TestBeyondTheFeed(t *testing.T) {
	now := time.Date(2026, 5, 29, 12, 0, 0, 0, time.UTC)
	segment := func(at time.Time) source.Segment { return source.SegmentAt(at) }
	old, later := now.Add(-time.Hour), now.AddDate(4, 0, 0)
	for name, tc := range map[string]struct {
		frontier offsets.Frontier
		want     string // "": not degraded
	}{
		"into the future": {offsets.Frontier{Time: now, Completed: segment(later),
			Seek: &offsets.Seek{To: segment(later).String()}}, "into the future"},
		"after the newest segment": {offsets.Frontier{Time: old, Completed: segment(old),
			Seek: &offsets.Seek{To: segment(old).String()}}, "no segment from"},
		"just moved": {offsets.Frontier{Time: now, Completed: segment(old),
			Seek: &offsets.Seek{To: segment(old).String()}}, ""},
		"the segment is found": {offsets.Frontier{Time: old, Completed: segment(old), Current: segment(now),
			Seek: &offsets.Seek{To: segment(old).String()}}, ""},
		"a first start in the future": {offsets.Frontier{Time: old, Completed: segment(later),
			Start: "1900000000000000000.0000000000"}, "BRIDGE_START was in the future"},
		"a first start behind the newest segment": {unbegun(now.AddDate(0, -1, 0), old, "2026-04-29"), "BRIDGE_START on"},
		"a first start just now":                  {unbegun(now.AddDate(0, -1, 0), now, "2026-04-29"), ""},
		"a first start at the end of the feed":    {unbegun(old, old, "2026-05-29T11:00:00Z"), ""},
		"a first start at the latest":             {unbegun(now.AddDate(0, -1, 0), old, "latest"), ""},
		"later segments wait for the current one": {offsets.Frontier{Time: now, Completed: segment(old),
			Current: segment(old), OpenSince: now.Add(-45 * time.Minute)}, "is still open, 45m0s after its end"},
		"all is delivered": {offsets.Frontier{Time: old, Completed: segment(old)}, ""},
	} {
		group := Group{State: "Stable", Members: []Member{{Instance: "i"}}}
		s := Of("b", &offsets.State{Frontier: &tc.frontier}, group, now)
		if got := s.Verdict.Code == Degraded; got != (tc.want != "") || !strings.Contains(s.Verdict.Text, tc.want) {
			t.Errorf("%s: %+v", name, s.Verdict)
		}
		searching := name == "just moved" || name == "a first start just now"
		if searching != (s.Verdict.Code == Starting) {
			t.Errorf("%s: %+v", name, s.Verdict)
		}
		// After run --once nobody has to run, and the place is as wrong.
		s = Of("b", &offsets.State{Frontier: &tc.frontier, Delivered: &offsets.Delivered{Time: now}},
			Group{State: "Empty"}, now)
		if got := s.Verdict.Code == Degraded; got != (s.Position.Beyond != "" || s.Position.OpenSince != nil) {
			t.Errorf("%s, after run --once: %+v", name, s.Verdict)
		}
		// An instance that is started would deliver nothing either.
		state := &offsets.State{Frontier: &tc.frontier, Owners: []string{""}, Cursors: []*offsets.Cursor{{Time: old}}}
		s = Of("b", state, Group{State: "Empty"}, now)
		back := strings.HasPrefix(s.Verdict.Remedy, MoveBack)
		if s.Verdict.Code != Nobody || back != (s.Position.Beyond != "") {
			t.Errorf("%s, and nobody runs: %+v", name, s.Verdict)
		}
		// Before one is started, only the seek is known.
		place := name == "just moved" && strings.Contains(s.Verdict.Text, "delivery will begin at 2026/05/29/1100,")
		if place != (name == "just moved") || !place && strings.Contains(s.Verdict.Text, "delivery will begin") {
			t.Errorf("%s, and nobody runs: %+v", name, s.Verdict)
		}
	}
}

// unbegun is a frontier behind a first start at a time, which has found no segment.
func unbegun(start, written time.Time, setting string) offsets.Frontier {
	at := envelope.Timestamp{Wall: start.UnixNano()}
	return offsets.Frontier{Time: written, Completed: history.Before(at), Start: at.String(),
		Settings: map[string]string{offsets.FrozenStart: setting}}
}

// A replay has no BRIDGE_START, and bridge seek would move the live bridge.
func TestBeyondOfAReplay(t *testing.T) {
	now := time.Date(2026, 5, 29, 12, 0, 0, 0, time.UTC)
	f := unbegun(now.AddDate(0, -1, 0), now.Add(-time.Hour), "2026-04-29")
	f.Settings[offsets.FrozenTopic] = "again"
	state := &offsets.State{Frontier: &f, Owners: []string{""}, Cursors: []*offsets.Cursor{{Time: f.Time}}}
	for _, group := range []Group{{State: "Stable", Members: []Member{{Instance: "i"}}}, {State: "Empty"}} {
		v := Of("b.replay.again", state, group, now).Verdict
		if !strings.Contains(v.Text, "the feed has no segment from --from on, 2026-04-29T12:00:00Z") ||
			!strings.HasSuffix(v.Remedy, "bridge replay --cleanup --topic again, and repeat it with a --from that the "+
				"feed has") {
			t.Errorf("%s: %+v", group.State, v)
		}
	}
}

// Before the first start nobody has committed anything, and the place that a seek or BRIDGE_START has chosen counts all
// the same: it is named, and one in the future is not mended by starting an instance.
func TestPlaceBeforeTheFirstCommit(t *testing.T) {
	now := time.Date(2026, 5, 29, 12, 0, 0, 0, time.UTC)
	later := now.AddDate(4, 0, 0)
	at := envelope.Timestamp{Wall: later.UnixNano()}
	started := &offsets.Frontier{Completed: history.Before(at), Start: at.String()}
	for _, tc := range []struct {
		state      offsets.State
		says, back string
	}{
		{offsets.State{}, "no instance has delivered anything yet", ""},
		{offsets.State{Place: "earliest"}, "begin at the oldest segment, where bridge seek has moved the bridge", ""},
		{offsets.State{Place: "2026/05/29/1100"}, "begin at 2026/05/29/1100, where bridge seek has moved the bridge", ""},
		{offsets.State{Place: source.SegmentAt(later).String()}, "into the future, to 2030/05/29/1200", MoveBack},
		{offsets.State{Place: at.String()}, "into the future, to 2030-05-29T12:00:00Z", MoveBack},
		{offsets.State{Frontier: started}, "BRIDGE_START was in the future, 2030-05-29T12:00:00Z", MoveBack},
	} {
		v := Of("b", &tc.state, Group{State: "Empty"}, now).Verdict
		if v.Code != Nobody || !strings.Contains(v.Text, tc.says) || !strings.HasPrefix(v.Remedy, tc.back) ||
			!strings.HasSuffix(v.Remedy, "start an instance with bridge run") {
			t.Errorf("%+v: %+v", tc.state, v)
		}
	}
}
