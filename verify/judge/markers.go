package judge

import (
	"context"

	"blobfeed/envelope"
	"blobfeed/offsets"
	"blobfeed/source"
)

// expect passes the validator the markers that the feed explains.
func (s *judgedTopic) expect() {
	p, c := s.pass, s.checks
	if c.resolved == nil {
		return
	}
	for _, f := range p.over {
		if p.v.Feed.End == (envelope.Timestamp{}) || f.says.Compare(p.v.Feed.End) <= 0 {
			c.resolved.Expect(f.says.String())
		}
	}
	if p.v.Feed.End != (envelope.Timestamp{}) {
		c.resolved.Expect(p.v.Feed.End.String())
	}
	if s.v.state.scansOnly() {
		c.resolved.Expect(s.v.state.Frontier.Scan.Listed)
	}
}

// due passes the validator the required markers: those of each segment that is delivered, by the state, or without a
// state by what the topic has.
func (s *judgedTopic) due() {
	p, c, v := s.pass, s.feed, s.checks.resolved
	until := p.v.Until
	// The bridge may have left out segments before its start, or before the target of a seek.
	from := p.filter.From.Wall
	if to := p.sought.last.Time(); !to.IsZero() {
		from = max(from, to.UnixNano())
	}
	var last, most envelope.Timestamp // that was due, and that is promised: a marker is never below the one before
	all, ends := true, p.v.Feed.End != (envelope.Timestamp{})
	for i, f := range p.over {
		if all = s.delivered(i); !all {
			break
		}
		if f.says.Compare(most) > 0 {
			most = f.says
		}
		if _, one := p.v.Topics.Names.Constant(); !one &&
			(c.first == (source.Segment{}) || f.segment.Compare(c.first) < 0) {
			continue // the topic did not exist yet
		}
		switch {
		case s.barred(most), f.segment.Time().UnixNano() < from, until != (envelope.Timestamp{}) &&
			most.Compare(until) > 0:
			continue
		case ends && (f.end.UnixNano() > p.v.Feed.End.Wall || i+1 == len(p.over) ||
			p.over[i+1].segment.Time().UnixNano() > p.v.Feed.End.Wall+int64(segmentSlack)):
			continue // its marker has the end of all, if the bridge knew by then that it is the last
		}
		last = most
		if p.v.Kafka.Transactional { // else only the last of a run of small segments is written
			v.Require(last.String())
		}
	}
	switch n := len(p.over); {
	case !ends:
	case p.v.state != nil && p.v.state.Frontier.Ended,
		p.v.state == nil && all && n > 0 && p.over[n-1].says.Compare(p.v.Feed.End) > 0:
		last = p.v.Feed.End
	}
	if last != (envelope.Timestamp{}) {
		v.Require(last.String())
	}
}

// delivered reports whether a finished segment is delivered and its marker written, as far as that is known.
func (s *judgedTopic) delivered(i int) bool {
	p, c := s.pass, s.feed
	switch {
	case p.v.state != nil:
		return p.over[i].segment.Compare(p.v.state.Frontier.Completed) <= 0
	case !p.v.Kafka.Transactional || len(c.cutAt) > 0 || len(s.seeks) > 0: // the count of records proves nothing
		return false
	}
	return c.noted >= c.ends[i]
}

// look passes the validators what the state says before and after the topic was read.
func (s *judgedTopic) look(ctx context.Context) error {
	if s.v.state == nil {
		return nil
	}
	again, err := s.v.cluster.state(ctx, s.v.state.topic) // the bridge delivers meanwhile
	if err != nil {
		return err
	}
	now := s.v.state.Frontier
	if again != nil && again.Frontier != nil {
		now = again.Frontier
	}
	s.bounds(now)
	s.knowScans(now)
	return nil
}

// bounds passes the validator of markers what the state says. The last marker is at or above the time that was resolved
// before the topic was read, and at or below the time that is resolved now. There can be markers of seeks and of lost
// history, or not.
func (s *judgedTopic) bounds(now *offsets.Frontier) {
	before, v := s.v.state.Frontier, s.checks.resolved
	if v == nil {
		return
	}
	v.Unmoved, v.Whole = now.Epoch == 0, now.Gaps == 0 && now.Born == 0 && now.Gap == nil
	if s.v.Until != (envelope.Timestamp{}) {
		return
	}
	least := before.Resolved
	if s.fresh || before.Gap != nil && len(s.markers) == 0 || before.Owed { // its marker comes next
		least = ""
	}
	v.Last(least, now.Resolved)
}

// emptied tells the validator of markers about partitions from which retention deleted the start, and with it all that
// the judged bridge wrote: only records of others are left.
func (s *judgedTopic) emptied() {
	t := s.markersOf()
	if t.portion == nil {
		return
	}
	for p := range t.from {
		if t.deleted(p) && !t.portion.own[p] {
			s.checks.resolved.StartsLate(p, true)
		}
	}
}
