package ops

import (
	"cmp"
	"fmt"
	"time"

	"blobfeed/bridge"
	"blobfeed/internal/status"
)

func (m *Monitor) reasons(s *Status, connected bool) {
	s.Reasons = []Reason{}
	add := func(code string, lease *int32, format string, args ...any) {
		s.Reasons = append(s.Reasons, Reason{Code: code, Lease: lease, Detail: fmt.Sprintf(format, args...)})
	}
	because := func(why, do string) { // the last reason
		if r := &s.Reasons[len(s.Reasons)-1]; why != "" {
			r.Detail, r.Remedy = r.Detail+": "+why, do
		}
	}
	last := func() (why, do string) { // of the instance
		for _, e := range s.Errors {
			if e.Lease == -1 {
				return e.Error, e.Remedy
			}
		}
		return "", ""
	}
	switch {
	case m.draining:
		add("draining", nil, "the instance is stopping")
	case m.down != status.Problem{}:
		add("failed", nil, "%s", m.down.Cause)
		s.Reasons[0].Remedy = m.down.Remedy
	case !connected:
		add("starting", nil, "the bridge has not started yet")
		why, do := last()
		because(cmp.Or(why, "the brokers have not answered yet"), do)
	case !m.member:
		add("no_member", nil, "the instance is not a member of the group")
		because(last())
	}
	for _, l := range s.Leases {
		if l.State != status.Stuck {
			continue
		}
		text := "lease %d has had work for %s without a commit"
		if m.leases[l.Lease].activity == bridge.Drained {
			text = "lease %d can't see for %s whether there is more"
		}
		add("stuck", &l.Lease, text, l.Lease, time.Duration(l.Working*float64(time.Second)).Round(time.Second))
		if l.Error != nil {
			because(l.Error.Error, l.Error.Remedy)
		}
	}
}
