package ops

import (
	"fmt"
	"strings"
	"time"

	"blobfeed/internal/plain"
	"blobfeed/internal/status"
)

// lasting is how long an error of the instance counts. Attempts are at most 30 s apart.
const lasting = 45 * time.Second

// judge adds the verdict, and what is wrong at this moment, to s.
func (m *Monitor) judge(s *Status, now time.Time) {
	var problems []status.Problem
	add := func(cause, do string) {
		if cause != "" {
			problems = append(problems, status.Problem{Cause: cause, Remedy: do})
		}
	}
	unreachable := ""
	if m.kafka.why != "" && strings.Contains(m.trouble.Error, m.kafka.why) { // the same, with what to do about it
		unreachable = m.trouble.Remedy
	}
	add(m.kafka.kafkaProblem(now), unreachable)
	add(m.storage.storageProblem(now), "")
	if now.Sub(m.started) >= lasting { // else it has hardly looked
		add(s.Position.Beyond, status.MoveBack)
	}
	starting := ""
	for _, r := range s.Reasons {
		switch {
		case r.Code == "starting" && m.trouble.Error == "":
			starting = "the brokers have not answered yet"
		case r.Code == "no_member" && !m.joined:
			starting = "the instance joins the group"
		default:
			add(r.Detail, r.Remedy)
		}
	}
	for _, l := range s.Leases {
		if l.Failing && l.Error != nil && l.State != status.Stuck {
			where := ""
			if !l.Here {
				where = " of instance " + l.Owner
			}
			add(fmt.Sprintf("lease %d%s: %s", l.Lease, where, l.Error.Error), l.Error.Remedy)
		}
	}
	if s.Ready && m.trouble.Error != "" && now.Sub(m.trouble.Time) < lasting {
		add(m.trouble.Error, m.trouble.Remedy)
	}
	s.Problems = []string{}
	for _, p := range problems {
		s.Problems = append(s.Problems, plain.Line(p.String()))
	}
	s.Verdict = s.Judge(starting, problems)
}
