package bridge

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/bridge/pipeline"
	"blobfeed/internal/catalog"
	"blobfeed/internal/history"
	"blobfeed/internal/pause"
	"blobfeed/internal/testing/mutation"
	"blobfeed/offsets"
	"blobfeed/source"
)

// instance is what the workers of an instance have in common. Bridge fills it before it joins the group, and so before
// the first worker starts. Nobody changes it afterwards. What the fields point to guards itself.
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
	start  int64   // end of partition 0 of the offsets topic when this instance started
	ends   []int64 // without transactions: of all partitions, a moment before

	poke chan struct{} // capacity 1: something changed that --once waits for
}

// caughtUp reports whether s holds what the topic held when this instance started (I10): before that, the view shows
// frontiers of the past, which nothing may be decided by.
func (inst *instance) caughtUp(s *offsets.State) bool { return s.Passed(0, inst.start) }

// settled reports whether s may end the instance by what it says: it is caught up, and no repair is due. Without
// transactions, a former owner of any lease may have written late, so all partitions count.
func (inst *instance) settled(s *offsets.State) bool {
	_, regressed := s.Regressed()
	return inst.caughtUp(s) && !regressed && s.Reached(inst.ends)
}

// shardsOf returns the shards of a segment that belong to a lease.
func (inst *instance) shardsOf(lease int32, m source.Manifest) []int {
	return shardsOf(int(lease), inst.leases, m)
}

// retry calls f until it succeeds, and reports every failure. It gives up when ctx ends, when another attempt cannot
// help, and, with Once, after onceAttempts. Lease is -1 where it concerns the instance.
func (inst *instance) retry(ctx context.Context, lease int32, f func(context.Context) error) error {
	return inst.opts.retries(func(err error) { inst.opts.Observer.Failed(lease, err) }).Do(ctx, f)
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
	return fmt.Errorf("%w, but no instance of another name has taken the lease: its transaction was open for longer "+
		"than %s, the frontier moves, or two instances have the same name", err, inst.opts.Kafka.TxnTimeout)
}

// patience is how long brokers may take to acknowledge records before they are asked why; tests have a shorter one.
var patience = 5 * time.Second

// explainWait reports which topic takes no records, while brokers do not acknowledge those of a lease. Brokers that are
// only slow are no failure.
func (inst *instance) explainWait(ctx context.Context, lease int32) {
	for wait := patience; ; {
		s, _, _ := inst.view.Get()
		if err := inst.catalog.Unwritable(ctx, s.Frontier); err != nil && ctx.Err() == nil {
			inst.opts.Observer.Failed(lease, err)
			wait = maxDelay
		}
		if pause.For(ctx, wait) != nil {
			return
		}
	}
}

// discard ends what the brokers left open of the lease's last transaction, if there is such a thing (I1, I2): its
// cursor does not count, so its records are delivered again, and must not become visible by the end of a transaction
// of ours. In partitions where the brokers did write the end they are doubled; nothing is lost.
func (inst *instance) discard(ctx context.Context, lease *offsets.Lease) error {
	known, ok := lease.State().Torn(lease.Partition)
	if !ok {
		return nil
	}
	inst.opts.Log.Warn("the brokers left a transaction without its end; delivering its records again",
		"lease", lease.Partition, "effect", "records of partitions that have the end are doubled; mostly, none has it")
	ends, err := inst.catalog.Opened(ctx, known)
	if err != nil {
		return err
	}
	return lease.Discard(ctx, ends)
}

// fence acquires lease p for nobody, and discards what the brokers left open. The lease may have no work where the move
// leads. Then nobody else acquires it, and consumers would wait for the open records forever.
func (inst *instance) fence(ctx context.Context, p int32) error {
	lease, err := offsets.Fence(ctx, inst.cfg, inst.view, p)
	if err != nil {
		return err
	}
	defer lease.Close(ctx)
	mutation.Crash("fences", "one")
	return inst.discard(ctx, lease)
}
