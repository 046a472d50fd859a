package bridge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"blobfeed/internal/topics"
	"blobfeed/offsets"
)

// reachTimeout is when an attempt to reach the brokers is given up and reported. It covers nothing that grows with what
// they hold: the client bounds each further request.
const reachTimeout = 15 * time.Second

// prepare makes sure that the topics exist and fit the settings, and completes inst.
func (inst *instance) prepare(ctx context.Context) error {
	if err := inst.reach(ctx); err != nil {
		return err
	}
	o := inst.opts
	_, err := topics.Count(ctx, kadm.NewClient(inst.client), inst.cfg.Topic)
	var gone *topics.MissingError
	if errors.As(err, &gone) { // nothing is created before feed and registry have answered, or beside another bridge
		if err = inst.history.Readable(ctx, o.Feed.Start, o.Feed.scansFirst(), o.Now()); err == nil {
			err = inst.catalog.Admit(ctx)
		}
	}
	if err != nil {
		return err
	}
	leases, created, err := inst.catalog.Admin.OpenState(ctx, inst.cfg.Topic, o.Kafka.Leases)
	if errors.As(err, &gone) { // if the user creates topics, all that are missing are named at once
		err = cmp.Or(inst.catalog.Missing(ctx), err)
	}
	if err != nil {
		return err
	}
	var frontier *offsets.Frontier
	var end int64
	if !created { // a new topic has nothing to read, and no leaders yet
		if frontier, end, err = inst.storedFrontier(ctx, leases); err != nil {
			return err
		}
	}
	if err := inst.catalog.Prepare(ctx, frontier); err != nil {
		return err
	}
	inst.leases, inst.start, inst.view = leases, end, offsets.NewView(inst.cfg.Topic, leases)
	inst.view.Frugal = o.Pace.Frugal
	inst.view.Trouble = func(err error) { o.Observer.Failed(-1, err) }
	return nil
}

// reach returns an error if no broker answers.
func (inst *instance) reach(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, reachTimeout, errors.New("the brokers did not answer in time"))
	defer cancel()
	if err := inst.client.Ping(ctx); err != nil {
		return fmt.Errorf("reaching the brokers: %w", cmp.Or(context.Cause(ctx), err))
	}
	return nil
}

// storedFrontier reads the frontier of an earlier start, nil if there is none, and where its partition ends. A
// transaction may be open there, so the frontier may be an old one; then it is not judged here.
func (inst *instance) storedFrontier(ctx context.Context, leases int) (f *offsets.Frontier, end int64, err error) {
	topic := inst.cfg.Topic
	ends, err := inst.catalog.Admin.Ends(ctx, topic)
	if err != nil {
		return nil, 0, err
	}
	if !inst.opts.Kafka.Transactional {
		inst.ends = ends
	}
	only := make([]int64, leases) // the frontier's partition is read: the others may hold a gigabyte
	copy(only[:1], ends)
	s, err := offsets.ReadTo(ctx, topic, only, inst.opts.Kafka.Client...)
	if err != nil {
		return nil, 0, err
	}
	if end, err = offsets.EndOf(ctx, inst.client, topic, 0); err != nil || s.Frontier == nil || !s.Passed(0, end) {
		return s.Frontier, end, err
	}
	if inst.opts.Stored().Fit(s) != nil { // what the error says depends on all cursors
		if s, err = offsets.ReadTo(ctx, topic, ends, inst.opts.Kafka.Client...); err != nil {
			return nil, 0, err
		}
		if s.Frontier == nil {
			return nil, 0, fmt.Errorf("reading the state in %s: it has changed meanwhile", topic)
		}
		if err := inst.opts.Stored().Fit(s); err != nil {
			return nil, 0, err
		}
	}
	return s.Frontier, end, inst.opts.Stored().FitLeases(s.Frontier, leases)
}
