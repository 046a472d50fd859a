package bridge

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/bridge/pipeline"
	"blobfeed/internal/catalog"
	"blobfeed/internal/history"
	"blobfeed/internal/pause"
	"blobfeed/internal/topics"
	"blobfeed/offsets"
	"blobfeed/source"
)

// instance is what an instance and its workers have in common. The instance fills it before it joins the group, and so
// before the first worker starts. Nobody changes it afterwards. What the fields point to guards itself.
type instance struct {
	opts    *Options
	cfg     *offsets.Config
	client  *kgo.Client
	catalog *catalog.Catalog
	history *history.History
	pipe    *pipeline.Pipeline
	listing pause.Turn // of the leases, to list

	view   *offsets.View
	leases int
	start  int64 // end of partition 0 of the offsets topic when this instance started

	poke chan struct{} // capacity 1: something changed that --once waits for
}

// caughtUp reports whether s holds what the topic held when this instance started (I10): before that, the view shows
// frontiers of the past, which nothing may be decided by.
func (inst *instance) caughtUp(s *offsets.State) bool { return s.Passed(0, inst.start) }

// shardsOf returns the shards of a segment that belong to a lease.
func (inst *instance) shardsOf(lease int32, m source.Manifest) []int {
	return shardsOf(int(lease), inst.leases, m)
}

// retry calls f until it succeeds, and reports every failure. It gives up when ctx ends, when another attempt cannot
// help, and, with Once, after onceAttempts. Lease is -1 where it concerns the instance.
func (inst *instance) retry(ctx context.Context, lease int32, f func(context.Context) error) error {
	return attempt(ctx, inst.opts.Once, func(err error) { inst.opts.Observer.Failed(lease, err) }, f)
}

// explain adds to a fence of lease p what is known of its reason.
func (inst *instance) explain(p int32, err error) error {
	if !errors.Is(err, offsets.ErrFenced) {
		return err
	}
	s, _, verr := inst.view.Get()
	if verr != nil {
		return err
	}
	if owner := s.Owners[p]; owner != inst.opts.Instance && owner != "" {
		return fmt.Errorf("%w: instance %s has taken the lease", err, owner)
	}
	return fmt.Errorf("%w, and no other instance holds the lease: its transaction was open for longer than "+
		"BRIDGE_TXN_TIMEOUT, or the frontier moves", err)
}

// patience is how long brokers may take to acknowledge records before they are asked why; tests have a shorter one.
var patience = 5 * time.Second

// transactionLog is the topic in which brokers keep transactions.
const transactionLog = "__transaction_state"

// explainWait reports which topic takes no records, while brokers do not acknowledge those of a lease. Brokers that are
// only slow are no failure.
func (inst *instance) explainWait(ctx context.Context, lease int32) {
	for wait := patience; ; {
		s, _, _ := inst.view.Get()
		names := append(inst.catalog.Written(s.Frontier), inst.opts.offsetsTopic())
		if inst.opts.Transactional {
			names = append(names, transactionLog)
		}
		if err := topics.Unwritable(ctx, kadm.NewClient(inst.client), true, names...); err != nil && ctx.Err() == nil {
			inst.opts.Observer.Failed(lease, err)
			wait = maxDelay
		}
		if pause.For(ctx, wait) != nil {
			return
		}
	}
}
