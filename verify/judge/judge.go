package judge

import (
	"context"
	"fmt"

	"blobfeed/envelope"
	"blobfeed/internal/topicname"
	"blobfeed/verify"
)

// subject is a topic that is judged.
type subject struct {
	*topic
	encoder *envelope.Encoder // with --feed
	checks  *checks
	feed    *comparison // nil: without --feed
	fresh   bool        // new in the current segment, so that no marker is due yet
}

func (v *verification) run(ctx context.Context) (reports []*Report, err error) {
	state, err := v.state(ctx)
	if err != nil {
		return nil, err
	}
	if v.sharing, err = v.share(ctx, state); err != nil {
		return nil, err
	}
	subjects, err := v.subjects(ctx, state)
	for _, s := range subjects {
		defer s.close()
	}
	if err != nil {
		return nil, err
	}
	var pass *feedPass
	if v.ReadFeed {
		pass = &feedPass{v: v}
		if err := v.walk(ctx, pass, subjects, state); err != nil {
			return nil, err
		}
	}
	for _, s := range subjects {
		r, err := v.judge(ctx, s, pass, state)
		if err == nil && s.feed != nil {
			r, err = v.explain(ctx, s, pass, state, r)
		}
		if err != nil {
			return nil, err
		}
		reports = append(reports, r)
	}
	if pass != nil {
		reports = append(reports, pass.strayed()...)
	}
	if v.avro != nil && v.avro.Err() != nil {
		return nil, v.avro.Err()
	}
	return reports, nil
}

// subjects opens the topics.
func (v *verification) subjects(ctx context.Context, state *progressState) (all []*subject, err error) {
	names, fresh := []string{v.Topic}, map[string]bool{}
	if v.Topic == "" {
		if names, fresh = state.topics(); len(names) == 0 {
			return nil, unusable("BRIDGE_TOPIC=%s names many topics, and %s.offsets has none: name one with --topic",
				v.Frozen["BRIDGE_TOPIC"], v.Name)
		}
	}
	for _, name := range names {
		s := &subject{fresh: fresh[name]}
		var markers *topic
		if v.Markers == envelope.MarkersTopic { // before the records that they stand for
			if markers, err = v.open(ctx, topicname.Markers(name)); err != nil {
				return all, err
			}
		}
		if s.topic, err = v.open(ctx, name); err != nil {
			if markers != nil {
				markers.close()
			}
			return all, err
		}
		all = append(all, s)
		if markers != nil {
			if err := s.putBeside(ctx, markers); err != nil {
				return all, err
			}
		}
		if n := len(v.GrownFrom); n > 0 && v.GrownFrom[n-1] > len(s.to) {
			return all, unusable("--grown-from %d: %s has %d partitions now",
				v.GrownFrom[n-1], name, len(s.to))
		}
		if v.ReadFeed {
			if s.encoder, err = v.Encoder(ctx, name); err != nil {
				return all, v.unread(err, name)
			}
		}
	}
	return all, nil
}

func (v *verification) open(ctx context.Context, name string) (*topic, error) {
	t, err := v.cluster.open(ctx, name)
	if err == nil {
		t.avro = v.avro
		if v.sharing != nil {
			t.portion = v.sharing.portion(topicname.Records(name))
		}
	}
	return t, err
}

// judge reads a topic.
func (v *verification) judge(ctx context.Context, s *subject, pass *feedPass, state *progressState) (*Report, error) {
	r := &Report{Topic: s.name, Partitions: len(s.to)}
	if s.empty() && (s.beside == nil || s.beside.empty()) && (s.feed == nil || s.feed.Required() == 0) {
		r.Problem = fmt.Sprintf("topic %s is empty: nothing is checked", s.name)
		return r, nil
	}
	s.checks = v.checks(s)
	if s.feed != nil {
		s.checks.replay(s.feed)
		s.checks.expect(s.feed)
	}
	group := verify.All(s.checks.validators()...)
	reached := map[int32]bool{}
	note := func(rec verify.Record) (more bool) {
		if s.checks.seen != nil {
			s.checks.first = s.checks.seen.First(&rec)
		}
		group.Note(rec)
		if at, ok := markerTime(&rec); ok && v.Until != (envelope.Timestamp{}) && at.Compare(v.Until) >= 0 {
			reached[rec.Partition] = true
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
	for p := range int32(len(s.to)) {
		if v.Until != (envelope.Timestamp{}) && !reached[p] {
			return nil, fmt.Errorf("partition %d of %s has no marker at or above %s yet: wait for it, or give an earlier time",
				p, s.name, v.Until)
		}
	}
	if s.checks.resolved != nil {
		s.emptied()
		if pass != nil {
			pass.due(s, v.Until)
		}
		if err := v.bounds(ctx, s, state); err != nil {
			return nil, err
		}
	}
	r.fill(group.Summary(), s, pass, state)
	if s.portion != nil {
		return r, r.share(ctx, s.topic)
	}
	return r, nil
}
