package judge

import (
	"context"
	"slices"
	"time"

	"blobfeed/envelope"
	"blobfeed/source"
)

// expect passes the validator the markers that the feed explains.
func (s *trial) expect() {
	p, c := s.pass, s.checks
	if c.resolved == nil {
		return
	}
	for _, f := range p.over {
		if p.v.End == (envelope.Timestamp{}) || f.says.Compare(p.v.End) <= 0 {
			c.resolved.Expect(f.says.String())
		}
		if p.slack != nil {
			c.resolved.Former(f.said.String())
		}
	}
	if p.v.End != (envelope.Timestamp{}) {
		c.resolved.Expect(p.v.End.String())
	}
	if s.state.scansOnly() {
		c.resolved.Expect(s.state.Frontier.Scan.Listed)
	}
}

// due passes the validator the required markers: those of each segment that is delivered, by the state, or without a
// state by what the topic has.
func (s *trial) due() {
	p, c, v := s.pass, s.feed, s.checks.resolved
	until := p.v.Until
	// The bridge may have left out segments before its start, or before the target of a seek.
	from := p.filter.From.Wall
	if to := p.sought.last.Time(); !to.IsZero() {
		from = max(from, to.UnixNano())
	}
	var last, most envelope.Timestamp // that was due, and that is promised: a marker is never below the one before
	all, ends := true, p.v.End != (envelope.Timestamp{})
	for i, f := range p.over {
		if all = s.delivered(i); !all {
			break
		}
		says := f.says
		former := p.slack != nil && v.Came(f.said.String())
		if former {
			says = f.said
		}
		if says.Compare(most) > 0 {
			most = says
		}
		if _, one := p.v.Topics.Constant(); !one && (c.first == (source.Segment{}) || f.segment.Compare(c.first) < 0) {
			continue // the topic did not exist yet
		}
		switch {
		case former, s.barred(most), f.segment.Time().UnixNano() < from, until != (envelope.Timestamp{}) &&
			most.Compare(until) > 0:
			continue
		case ends && (f.end.UnixNano() > p.v.End.Wall || i+1 == len(p.over) ||
			p.over[i+1].segment.Time().UnixNano() > p.v.End.Wall+int64(segmentSlack)):
			continue // its marker has the end of all, if the bridge knew by then that it is the last
		}
		last = most
		if p.v.Transactional { // else only the last of a run of small segments is written
			v.Due(last.String())
		}
	}
	switch n := len(p.over); {
	case !ends:
	case p.state != nil && p.state.Frontier.Ended,
		p.state == nil && all && n > 0 && p.over[n-1].says.Compare(p.v.End) > 0:
		last = p.v.End
	}
	if last != (envelope.Timestamp{}) {
		v.Due(last.String())
	}
}

// delivered reports whether a finished segment is delivered and its marker written, as far as that is known.
func (s *trial) delivered(i int) bool {
	p, c := s.pass, s.feed
	switch {
	case p.state != nil:
		return p.over[i].segment.Compare(p.state.Frontier.Completed) <= 0
	case !p.v.Transactional || len(c.begins) > 0 || len(s.seeks) > 0: // the count of records proves nothing
		return false
	}
	return c.noted >= c.ends[i]
}

// formerSlack returns the BRIDGE_RESOLVED_SLACK with which the feed explains the markers, if there is one. Several
// values can differ by whole segments: it returns the shortest.
func (p *feedPass) formerSlack(markers []string) *time.Duration {
	var at []time.Time
	for _, text := range markers {
		ts, err := envelope.ParseTimestamp(text)
		if err != nil {
			return nil
		}
		at = append(at, time.Unix(0, ts.Wall))
	}
	ends := func(t time.Time) bool {
		return slices.ContainsFunc(p.over, func(f finished) bool { return f.end.Add(segmentSlack).Equal(t) })
	}
	var least *time.Duration
	for _, f := range p.over {
		slack := f.end.Add(segmentSlack).Sub(at[0])
		fits := slack >= 0 && !slices.ContainsFunc(at, func(t time.Time) bool { return !ends(t.Add(slack)) })
		if fits && (least == nil || slack < *least) {
			least = &slack
		}
	}
	return least
}

// bounds passes the validator the bounds of the last marker: at or above the time that was resolved before the topic
// was read, and at or below the time that is resolved now.
func (v *verification) bounds(ctx context.Context, s *trial) error {
	state := s.state
	if state == nil || v.Until != (envelope.Timestamp{}) {
		return nil
	}
	least, most := state.Frontier.Resolved, state.Frontier.Resolved
	if s.fresh || state.Frontier.Gap != nil && len(s.markers) == 0 || state.Frontier.Owed { // its marker comes next
		least = ""
	}
	have, err := envelope.ParseTimestamp(s.checks.resolved.Newest())
	known, kerr := envelope.ParseTimestamp(most)
	if err == nil && (kerr != nil || have.Compare(known) > 0) { // the bridge delivers meanwhile
		now, err := v.cluster.state(ctx, state.topic)
		if err != nil {
			return err
		}
		if now != nil && now.Frontier != nil {
			most = now.Frontier.Resolved
		}
	}
	s.checks.resolved.Last(least, most)
	return nil
}

// emptied tells the validator of markers about partitions from which retention deleted the start, and with it all that
// the judged bridge wrote: only records of others are left.
func (s *trial) emptied() {
	t := s.topic
	if t.beside != nil {
		t = t.beside
	}
	if t.portion == nil {
		return
	}
	for p, from := range t.from {
		if from > 0 && !t.portion.own[p] {
			s.checks.resolved.Late(p, true)
		}
	}
}
