package ops

import (
	"fmt"
	"time"

	"blobfeed/bridge"
	"blobfeed/internal/status"
)

func (m *Monitor) reasons(s *Status, connected bool) {
	s.Reasons = []Reason{}
	add := func(code string, lease *int32, format string, args ...any) {
		s.Reasons = append(s.Reasons, Reason{code, lease, fmt.Sprintf(format, args...)})
	}
	last := func(p int32) string {
		for _, e := range s.Errors {
			if e.Lease == p {
				return ": " + e.Error
			}
		}
		return ""
	}
	switch {
	case m.draining:
		add("draining", nil, "the instance is stopping")
	case m.down != "":
		add("failed", nil, "%s", m.down)
	case !connected:
		why := last(-1)
		if why == "" {
			why = ": the brokers have not answered yet"
		}
		add("starting", nil, "the bridge has not started yet%s", why)
	case !m.member:
		add("no_member", nil, "the instance is not a member of the group%s", last(-1))
	}
	for _, l := range s.Leases {
		if l.State != status.Stuck {
			continue
		}
		why := ""
		if l.Error != nil {
			why = ": " + l.Error.Error
		}
		text := "lease %d has had work for %s without a commit%s"
		if m.leases[l.Lease].activity == bridge.Drained {
			text = "lease %d can't see for %s whether there is more%s"
		}
		add("stuck", &l.Lease, text, l.Lease, time.Duration(l.Working*float64(time.Second)).Round(time.Second), why)
	}
}
