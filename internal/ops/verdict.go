package ops

import (
	"fmt"
	"time"

	"blobfeed/internal/plain"
	"blobfeed/internal/status"
)

// lasting is how long an error of the instance counts. Attempts are at most 30 s apart.
const lasting = 45 * time.Second

// judge adds the verdict, and what is wrong at this moment, to s.
func (m *Monitor) judge(s *Status, now time.Time) {
	s.Problems = []string{}
	add := func(problem string) {
		if problem != "" {
			s.Problems = append(s.Problems, problem)
		}
	}
	add(m.kafka.kafkaProblem(now))
	add(m.storage.storageProblem(now))
	if now.Sub(m.started) >= lasting { // else it has hardly looked
		add(s.Position.Beyond)
	}
	starting := ""
	for _, r := range s.Reasons {
		switch {
		case r.Code == "starting" && m.trouble.Error == "":
			starting = "the brokers have not answered yet"
		case r.Code == "no_member" && !m.joined:
			starting = "the instance joins the group"
		default:
			add(r.Detail)
		}
	}
	for _, l := range s.Leases {
		if l.Failing && l.Error != nil && l.State != status.Stuck {
			where := ""
			if !l.Here {
				where = " of instance " + l.Owner
			}
			add(fmt.Sprintf("lease %d%s: %s", l.Lease, where, l.Error.Error))
		}
	}
	if s.Ready && m.trouble.Error != "" && now.Sub(m.trouble.Time) < lasting {
		add(m.trouble.Error)
	}
	for i, p := range s.Problems {
		s.Problems[i] = plain.Line(p)
	}
	s.Verdict = s.Judge(starting, s.Problems)
}
