package judge

import (
	"context"
	"fmt"

	"blobfeed/envelope"
	"blobfeed/verify"
)

// run is a topic while it is judged.
type run struct {
	*subject
	state  *progressState // nil: the topic has none
	pass   *feedScan      // nil: without --feed
	feed   *comparison    // of the pass
	checks *checks
}

// judge reads a topic.
func (v *verification) judge(ctx context.Context, s *run) (*Report, error) {
	r := &Report{Topic: s.name, Partitions: len(s.to), reached: map[int32]int64{}, spread: s.growth.now}
	if s.empty() && (s.beside == nil || s.beside.empty()) && (s.feed == nil || s.feed.Required() == 0) {
		r.Problem = fmt.Sprintf("topic %s is empty: nothing is checked", s.name)
		return r, nil
	}
	s.checks = v.checks(s)
	s.knowScan()
	if s.feed != nil {
		s.expect()
	}
	group := verify.All(s.checks.validators()...)
	note := func(rec verify.Record) (more bool) {
		if v.Seen != nil {
			v.Seen.Records.Add(1)
		}
		if s.checks.seen != nil {
			s.checks.first = s.checks.seen.First(&rec)
		}
		group.Note(rec)
		if at, ok := markerTime(&rec); ok && v.Until != (envelope.Timestamp{}) && at.Compare(v.Until) >= 0 {
			r.reached[rec.Partition] = rec.Offset
			if _, upTo, ok := rec.UpTo(); ok {
				r.reached[rec.Partition] = upTo
			}
			return false
		}
		return true
	}
	if err := s.scan(ctx, note); err != nil {
		return nil, err
	}
	if v.Until == (envelope.Timestamp{}) && s.checks.resolved != nil {
		if err := s.catchUp(ctx, note); err != nil {
			return nil, err
		}
	}
	for p := range int32(s.growth.now) {
		if _, reached := r.reached[p]; v.Until != (envelope.Timestamp{}) && !reached {
			return nil, fmt.Errorf("partition %d of %s has no marker at or above %s yet: "+
				"wait for it, or give an earlier time",
				p, s.name, v.Until)
		}
	}
	if s.checks.resolved != nil {
		s.emptied()
		if s.pass != nil {
			s.due()
		}
		if err := v.bounds(ctx, s); err != nil {
			return nil, err
		}
	}
	if err := v.knowScans(ctx, s); err != nil {
		return nil, err
	}
	r.fill(group.Summary(), s)
	if s.portion != nil {
		return r, r.share(ctx, s.topic)
	}
	return r, nil
}
