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

// prepare makes sure that the topics exist and fit the settings, and completes sh.
func (inst *instance) prepare(ctx context.Context) error {
	if err := inst.reach(ctx); err != nil {
		return err
	}
	o, admin := inst.opts, kadm.NewClient(inst.client)
	_, err := topics.Count(ctx, admin, inst.cfg.Topic)
	var gone *topics.MissingError
	if errors.As(err, &gone) { // nothing is created if the feed can't be read, or the topic is another bridge's
		if _, err = o.Feed.LastConsumable(ctx); err == nil {
			err = inst.catalog.RejectTaken(ctx, inst.catalog.Constant()...)
		}
	}
	if err != nil {
		return err
	}
	leases, created, err := inst.catalog.Admin.OpenState(ctx, inst.cfg.Topic, o.OffsetsPartitions)
	if errors.As(err, &gone) { // if the user creates topics, all that are missing are named at once
		err = cmp.Or(inst.catalog.Missing(ctx), err)
	}
	if err != nil {
		return err
	}
	var frontier *offsets.Frontier
	var end int64
	if !created { // a new topic has nothing to read, and no leaders yet
		if frontier, end, err = inst.storedFrontier(ctx, admin, leases); err != nil {
			return err
		}
	}
	if err := inst.catalog.Prepare(ctx, frontier); err != nil {
		return err
	}
	inst.leases, inst.start, inst.view = leases, end, offsets.NewView(inst.cfg.Topic, leases)
	inst.view.Frugal = o.Frugal
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
func (inst *instance) storedFrontier(
	ctx context.Context, admin *kadm.Client, leases int,
) (f *offsets.Frontier, end int64, err error) {
	topic := inst.cfg.Topic
	ends, err := topics.Offsets(ctx, admin.ListCommittedOffsets, topic)
	if err != nil {
		return nil, 0, fmt.Errorf("reading the end of %s: %w", topic, err)
	}
	at := make([]int64, leases) // only the frontier's partition is read: the others may hold a gigabyte
	if o, ok := ends.Lookup(topic, 0); ok {
		at[0] = o.Offset
	}
	s, err := offsets.ReadTo(ctx, topic, at, inst.opts.Client...)
	if err != nil {
		return nil, 0, err
	}
	if end, err = offsets.EndOf(ctx, inst.client, topic, 0); err != nil || !s.Passed(0, end) {
		return s.Frontier, end, err
	}
	if f = s.Frontier; f != nil {
		if inst.opts.Stored().Fit(s) != nil {
			return nil, 0, inst.incompatible(ctx, ends)
		}
		if err := inst.opts.Stored().FitLeases(f, leases); err != nil {
			return nil, 0, err
		}
	}
	return f, end, nil
}

// incompatible returns the error for a state that other settings have written. It depends on all cursors.
func (inst *instance) incompatible(ctx context.Context, ends kadm.ListedOffsets) error {
	at := make([]int64, len(ends[inst.cfg.Topic]))
	for p := range at {
		if o, ok := ends.Lookup(inst.cfg.Topic, int32(p)); ok {
			at[p] = o.Offset
		}
	}
	s, err := offsets.ReadTo(ctx, inst.cfg.Topic, at, inst.opts.Client...)
	if err == nil && s.Frontier != nil {
		err = inst.opts.Stored().Fit(s)
	}
	if err == nil {
		err = fmt.Errorf("reading the state in %s: it has changed meanwhile", inst.cfg.Topic)
	}
	return err
}
