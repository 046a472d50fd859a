package bridge

import (
	"context"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"blobfeed/offsets"
	"blobfeed/source"
)

// reportTimeout bounds a report that nothing depends on.
const reportTimeout = 5 * time.Second

// reportDelivered says in the state that all is delivered, if no other instance is there. It is called when this one
// has left the group and its workers have ended: an owner record that follows is that of another run, and voids it.
func (inst *instance) reportDelivered() {
	ctx, cancel := context.WithTimeout(context.Background(), reportTimeout)
	defer cancel()
	groups, err := kadm.NewClient(inst.client).DescribeGroups(ctx, inst.opts.Name)
	if err == nil && len(groups[inst.opts.Name].Members) > 0 {
		return // the last one of them reports, if it is there only once, too
	}
	if err == nil {
		report := offsets.Delivered{Owner: inst.opts.Instance, Time: inst.opts.Now().UTC()}
		err = offsets.Report(ctx, inst.client, inst.cfg.Topic, report)
	}
	if err != nil {
		inst.opts.Log.Warn("bridge status will say that nobody runs, although everything is delivered", "error", err)
	}
}

// awaitAll returns when everything that the feed holds is delivered: for --once. Only what is committed counts, whoever
// delivered it: which leases this instance has, or another one has, changes at any moment.
func (inst *instance) awaitAll(ctx context.Context) error {
	for {
		s, changed, err := inst.view.Get()
		if err != nil {
			return err
		}
		var all bool
		err = inst.retry(ctx, -1, func(ctx context.Context) (err error) {
			all, err = inst.deliveredAll(ctx, s)
			return err
		})
		if err != nil {
			return err
		}
		if all {
			inst.reportWaiting(ctx)
			return nil
		}
		select {
		case <-changed:
		case <-inst.poke:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// deliveredAll reports whether nothing is left to deliver in state s.
func (inst *instance) deliveredAll(ctx context.Context, s *offsets.State) (bool, error) {
	f := s.Frontier
	if !inst.settled(s) || f == nil || f.Moving || f.Owed {
		return false, nil
	}
	if err := inst.opts.Stored().Fit(s); err != nil {
		return false, err // before a worker looks, which may be later than the end
	}
	if f.Ended {
		return true, nil
	}
	if f.Scan.Active() || s.Requested() != nil {
		return false, nil
	}
	if f.Current != (source.Segment{}) {
		// Later segments wait until the service finalizes this one, which may take it a day: nothing that the feed
		// holds now can be delivered meanwhile.
		return inst.drained(ctx, s)
	}
	_, more, err := inst.history.Next(ctx, f.At())
	return !more, err
}

// reportWaiting says which segments wait for one that is still open, when all that can be delivered is.
func (inst *instance) reportWaiting(ctx context.Context) {
	s, _, err := inst.view.Get()
	if err != nil || s.Frontier == nil || s.Frontier.Current == (source.Segment{}) {
		return
	}
	later := 0
	for _, err := range inst.opts.Feed.Source.Segments(ctx, s.Frontier.Current) {
		if err != nil {
			inst.opts.Log.Warn("it is unknown whether segments wait for the open one", "open", s.Frontier.Current,
				"error", err)
			return // it was a report only: all that could be delivered is
		}
		later++
	}
	if later > 0 {
		inst.opts.Log.Warn("later segments wait until Azure finalizes the open one", "open", s.Frontier.Current,
			"later", later, "hint", "run again when it is finalized")
	}
}

// drained reports whether the current segment is open, and holds nothing behind the committed cursors of its shards.
func (inst *instance) drained(ctx context.Context, s *offsets.State) (bool, error) {
	m, err := inst.history.Manifest(ctx, s.Frontier.Current, time.Time{})
	if errors.Is(err, source.ErrNotFound) {
		return false, nil // the workers report what that means
	}
	if err != nil || m.Finalized {
		return false, err // a finalized one is delivered when the frontier has passed it
	}
	return inst.history.Drained(ctx, m, func(shard int) source.ShardPosition {
		return s.Cursor(int32(shard%inst.leases)).At(m.Segment, shard)
	})
}

// awaitEnd returns when the feed is delivered to END_TIME. The coordinator ends it; all instances see it.
func (inst *instance) awaitEnd(ctx context.Context) error {
	s, err := inst.view.Await(ctx, func(s *offsets.State) bool {
		return inst.settled(s) && s.Frontier.Over()
	})
	if err != nil {
		return err
	}
	// If a transaction was open at the start, prepare could not compare the settings. The end may be that of others.
	return inst.opts.Stored().Fit(s)
}
