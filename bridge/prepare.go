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

// prepareTimeout is when an attempt to reach the brokers is given up and reported.
const prepareTimeout = 15 * time.Second

// prepare makes sure that the topics exist and fit the settings, and completes sh.
func (sh *shared) prepare(ctx context.Context) error {
	if err := sh.readFeedFirst(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, prepareTimeout, errors.New("the brokers did not answer in time"))
	defer cancel()
	unread, err := sh.rivals.atStart(ctx)
	if err != nil {
		return err
	}
	o, admin := sh.opts, kadm.NewClient(sh.client)
	leases, created, err := sh.topics.OpenState(ctx, sh.cfg.Topic, o.OffsetsPartitions)
	if errors.As(err, new(*topics.MissingError)) { // if the user creates topics, all that are missing are named at once
		err = cmp.Or(sh.topics.Missing(ctx, o.wanted()...), err)
	}
	if err != nil {
		return err
	}
	var frontier *offsets.Frontier
	var end int64
	if !created { // a new topic has nothing to read, and no leaders yet
		if frontier, end, err = sh.storedFrontier(ctx, admin, leases); err != nil {
			return err
		}
	}
	if err := sh.rivals.behind(ctx, frontier, unread); err != nil {
		return err
	}
	if err := sh.prepareTopics(ctx, frontier); err != nil {
		return err
	}
	sh.leases, sh.start, sh.view = leases, end, offsets.NewView(sh.cfg.Topic, leases)
	sh.view.Frugal = o.Frugal
	sh.view.Trouble = func(err error) { o.Observer.Failed(-1, err) }
	return nil
}

// readFeedFirst returns an error if this would be the first start, and the feed cannot be read: a wrong address or
// credential must leave no topics behind. If the brokers do not say, prepare asks them again.
func (sh *shared) readFeedFirst(ctx context.Context) error {
	brokers, cancel := context.WithTimeout(ctx, prepareTimeout)
	defer cancel()
	_, err := topics.Count(brokers, kadm.NewClient(sh.client), sh.cfg.Topic)
	if !errors.As(err, new(*topics.MissingError)) {
		return nil
	}
	_, err = sh.opts.Feed.LastConsumable(ctx)
	return err
}

// storedFrontier reads the frontier of an earlier start, nil if there is none, and where its partition ends. A
// transaction may be open there, so the frontier may be an old one; then it is not judged here.
func (sh *shared) storedFrontier(
	ctx context.Context, admin *kadm.Client, leases int,
) (f *offsets.Frontier, end int64, err error) {
	topic := sh.cfg.Topic
	ends, err := topics.Offsets(ctx, admin.ListCommittedOffsets, topic)
	if err != nil {
		return nil, 0, fmt.Errorf("reading the end of %s: %w", topic, err)
	}
	at := make([]int64, leases) // only the frontier's partition is read: the others may hold a gigabyte
	if o, ok := ends.Lookup(topic, 0); ok {
		at[0] = o.Offset
	}
	s, err := offsets.ReadTo(ctx, topic, at, sh.opts.Client...)
	if err != nil {
		return nil, 0, err
	}
	if end, err = offsets.EndOf(ctx, sh.client, topic, 0); err != nil || !s.Passed(0, end) {
		return s.Frontier, end, err
	}
	if f = s.Frontier; f != nil {
		if sh.opts.Compatible(s) != nil {
			return nil, 0, sh.incompatible(ctx, ends)
		}
		if err := sh.opts.FitsLeases(f, leases); err != nil {
			return nil, 0, err
		}
	}
	return f, end, nil
}

// incompatible returns the error for a state that other settings have written. It depends on all cursors.
func (sh *shared) incompatible(ctx context.Context, ends kadm.ListedOffsets) error {
	at := make([]int64, len(ends[sh.cfg.Topic]))
	for p := range at {
		if o, ok := ends.Lookup(sh.cfg.Topic, int32(p)); ok {
			at[p] = o.Offset
		}
	}
	s, err := offsets.ReadTo(ctx, sh.cfg.Topic, at, sh.opts.Client...)
	if err == nil && s.Frontier != nil {
		err = sh.opts.Compatible(s)
	}
	if err == nil {
		err = fmt.Errorf("reading the state in %s: it has changed meanwhile", sh.cfg.Topic)
	}
	return err
}
