package judge

import (
	"context"
	"fmt"
)

// Run judges the topics. The error says why it can't; what is wrong with a topic is in its report.
func Run(ctx context.Context, o Options) ([]*Report, error) {
	return newVerification(o).run(ctx)
}

func (v *verification) run(ctx context.Context) (reports []*Report, err error) {
	named := v.Topic != ""
	state, err := v.state(ctx)
	switch {
	case err != nil:
	case v.since != nil:
		err = v.since.begin(ctx, v, state)
	case state == nil:
		err = v.stateless(ctx, named)
	}
	if err != nil {
		return nil, err
	}
	if v.sharing, err = newSharing(ctx, &v.Options, state.feed(), v.cluster.claims); err != nil {
		return nil, err
	}
	subjects, err := v.subjects(ctx, state)
	for _, s := range subjects {
		defer s.close()
	}
	if err != nil {
		return nil, err
	}
	var table *census
	if v.ReadAccount {
		if table, err = v.newCensus(subjects, state); err != nil {
			return nil, err
		}
	}
	var pass *feedScan
	if v.ReadFeed {
		pass = &feedScan{v: v}
		if err := v.walk(ctx, pass, subjects, state); err != nil {
			return nil, err
		}
	}
	for _, s := range subjects {
		t := &run{subject: s, state: state, pass: pass}
		if pass != nil {
			t.feed = pass.of[s.name]
		}
		r, err := v.judge(ctx, t)
		if err == nil && pass != nil {
			err = v.inquire(ctx, t, r)
		}
		if err != nil {
			return nil, err
		}
		reports = append(reports, r)
	}
	if pass != nil {
		reports = append(reports, pass.state.missing("replay", replayPromise, "the feed has", "event", pass.stray)...)
	}
	if table != nil {
		more, err := table.take(ctx, reports)
		if err != nil {
			return nil, fmt.Errorf("comparing the account: %w", err)
		}
		reports = append(reports, more...)
	}
	if v.avro != nil && v.avro.Err() != nil {
		return nil, v.avro.Err()
	}
	return reports, nil
}
