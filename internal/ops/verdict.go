package ops

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"blobfeed/bridge"
	client "blobfeed/internal/kafka"
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

// lasting is how long an error of the instance counts. Attempts are at most 30 s apart.
const lasting = 45 * time.Second

// judge adds the verdict, and what is wrong at this moment, to s.
func (m *Monitor) judge(s *Status, connected bool, now time.Time) {
	var problems []status.Problem
	add := func(cause, do string) {
		if cause != "" {
			problems = append(problems, status.Problem{Cause: cause, Remedy: do})
		}
	}
	unreachable := ""
	same := m.kafka.why != "" && strings.Contains(m.trouble.Error, m.kafka.why) // with what to do about it
	if same {
		unreachable = m.trouble.Remedy
	}
	limit := silence
	switch {
	case !connected:
		limit = 0
	case m.joined && !m.member:
		limit = another
	}
	away := m.kafka.kafkaProblem(now, limit)
	known := same && away != "" // what troubles the instance is among the problems
	add(away, cmp.Or(unreachable, client.Silent))
	silent := len(problems)
	add(m.storage.storageProblem(now), "run bridge check")
	behind := func(text, do string) bool { // of the storage service's silence: said, with what to do about it
		yes := len(problems) > silent && m.storage.cause != "" && strings.Contains(text, m.storage.cause)
		if yes && do != "" {
			problems[silent].Remedy = do
		}
		return yes
	}
	known = known || behind(m.trouble.Error, m.trouble.Remedy)
	add(m.gone.Cause, m.gone.Remedy)
	starting := ""
	lacking := s.Position.Lacking()
	add(lacking.Cause, lacking.Remedy)
	open := s.Open()
	add(open.Cause, open.Remedy)
	for _, r := range s.Reasons {
		switch {
		case r.Code == "starting" && m.trouble.Error == "":
			starting = "the brokers have not answered yet"
		case r.Code == "no_member" && !m.joined:
			starting = "the instance joins the group" + m.awaits
		case away != "" && (r.Code == "starting" || r.Code == "no_member"): // because of that
		case behind(r.Detail, r.Remedy):
		default:
			add(r.Detail, r.Remedy)
		}
	}
	for _, l := range s.Leases {
		if l.Failing && l.Error != nil && l.State != status.Stuck && !behind(l.Error.Error, l.Error.Remedy) {
			where := ""
			if !l.Here {
				where = " of instance " + l.Owner
			}
			add(fmt.Sprintf("lease %d%s: %s", l.Lease, where, l.Error.Error), l.Error.Remedy)
			known = known || l.Error.Error == m.trouble.Error
		}
	}
	if s.Ready && m.trouble.Error != "" && now.Sub(m.trouble.Time) < lasting && !known {
		add(m.trouble.Error, m.trouble.Remedy)
	}
	s.Problems = []status.Problem{}
	for _, p := range problems {
		s.Problems = append(s.Problems, p.Line())
	}
	s.Verdict = s.Judge(starting, problems)
	// Until lease 0 has looked once, nobody knows what has come meanwhile, as while Kafka was away.
	l := m.leases[0]
	if s.Verdict.Text == status.AllWell && l != nil && l.idle.IsZero() && l.commit.IsZero() {
		s.Verdict = status.Verdict{Code: status.Starting, Text: "starting: the feed is looked at for the first time " +
			"since the leases were assigned"}
	}
}
