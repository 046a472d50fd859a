package bridge

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"blobfeed/bridge/pipeline"
	"blobfeed/internal/catalog"
	"blobfeed/internal/crash"
	"blobfeed/internal/suspects"
	"blobfeed/offsets"
)

// sweep asks for the blobs of suspects while the round lasts, and writes a deletion for each that is gone. It reports
// whether nothing is left.
func (r *scanRound) sweep(ctx context.Context) (finished bool, err error) {
	t := r.t
	if t.sweep == nil {
		err := t.instance.catalog.Sweepable(ctx, t.epoch.frontier, &t.opts.Feed.Filter)
		var never *catalog.UnsweepableError
		if errors.As(err, &never) {
			t.opts.Log.Error("the sweep is left out", "scan", r.scan.ID, "error", err)
			t.opts.Observer.Failed(t.p, err)
			r.done.LeftOut = err.Error()
			return true, nil
		}
		if err != nil {
			return false, r.later(ctx, err)
		}
		t.sweep = r.suspects()
	}
	for {
		s := t.sweep
		if len(s.Current.Suspects) == 0 {
			if s.Current.Last {
				lane := s.Current.Lane
				r.done.Judged = &lane
				r.done.Skipped += s.Current.Skipped
				s.Current = suspects.Batch{} // counted, also if the round ends before the next
			}
			r.done.Within = cmp.Or(s.Current.Within, r.done.Within)
			select {
			case b, ok := <-s.Batches:
				if !ok {
					err := s.Err()
					t.endSweep() // another one may begin
					return err == nil, r.later(ctx, err)
				}
				s.Current = b
				continue
			case <-ctx.Done():
				return false, nil // of the round, or of the tenure, whose context refuses the commit then
			case <-time.After(sweepPatience): // the others wait, and reading takes long
				return false, nil
			}
		}
		if err := r.judge(ctx, &s.Current); err != nil {
			return false, err
		}
		if r.done.Stopped {
			t.endSweep()
			return true, nil
		}
		if ctx.Err() != nil { // the rest comes in the next round
			return false, context.Cause(ctx)
		}
	}
}

// suspects starts to look for the keys of this lease's partitions. That outlives the round, because reading the topics
// takes longer than one, and ends with the tenure (tenure.sweep).
func (r *scanRound) suspects() *suspects.Reader {
	inst, opts := r.t.instance, r.t.opts
	return suspects.Read(r.t.work, suspects.Options{
		Client: opts.Kafka.Client, Scan: r.scan, Filter: &opts.Feed.Filter, Encoder: inst.catalog.Encoder,
		Bytes: opts.Pace.SweepBytes, Turn: inst.pipe.Sweep, Within: r.done.Within,
	}, r.done.Unjudged(r.t.epoch.frontier.Topics, r.t.p, inst.leases))
}

// planBytes is the memory of the keys that a plan compares: 15 million fit.
const planBytes = 128 << 20

// PlanSweep counts what the sweep of a scan would do, of topics with those partitions. It writes nothing.
func PlanSweep(
	ctx context.Context, o *Options, scan *offsets.Scan, partitions map[string]int32,
) (*suspects.Plan, error) {
	return planSweep(ctx, o, scan, partitions, planBytes)
}

func planSweep(
	ctx context.Context, o *Options, scan *offsets.Scan, partitions map[string]int32, bytes int,
) (*suspects.Plan, error) {
	return suspects.Prepare(ctx, suspects.Options{
		Client: o.Kafka.Client, Scan: scan, Filter: &o.Feed.Filter, Encoder: o.Records.Encoder,
		Bytes: bytes,
	}, suspects.Account{
		Inventory: o.Feed.Inventory, Requests: o.Pace.ScanRequests, Topics: o.Topics.Names,
		Partition: o.Records.Partition, Partitions: partitions,
	})
}

const (
	// sweepPatience is how long a round waits for suspects.
	sweepPatience = 100 * time.Millisecond
	// rowsAtOnce is how many suspects are judged together.
	rowsAtOnce = 500
)

// later reports an error of Kafka, and returns nil. The next round tries again: events are to be delivered meanwhile.
func (r *scanRound) later(ctx context.Context, err error) error {
	if r.t.findings.remember(ctx, r.t.opts.Now(), r.t.opts.Observer.advised(err)) {
		r.t.opts.Observer.Failed(r.t.p, err)
	}
	return nil
}

// judge asks for the blobs of the first suspects, and writes the deletions. Those without an answer when the round ends
// stay in b.
func (r *scanRound) judge(ctx context.Context, b *suspects.Batch) (err error) {
	t, n := r.t, min(len(b.Suspects), rowsAtOnce)
	gone, asked := make([]pipeline.Gone, n), make([]bool, n)
	r.begin()
	asking, actx := errgroup.WithContext(ctx)
	asking.SetLimit(t.opts.Pace.ScanRequests)
	for i, k := range b.Suspects[:n] {
		asking.Go(crash.Try(actx, "sweep", func() error {
			return t.retry(actx, func(ctx context.Context) error {
				there, served, err := t.opts.Feed.Inventory.Exists(ctx, k.Container, k.Name)
				if err == nil && !there {
					gone[i] = pipeline.Gone{Container: k.Container, Name: k.Name, Served: served}
				}
				if asked[i] = err == nil; asked[i] {
					r.answer()
				}
				return err
			})
		}))
	}
	if err := asking.Wait(); err != nil && ctx.Err() == nil {
		return err
	}
	left := n
	for i, k := range slices.Backward(b.Suspects[:n]) {
		if !asked[i] {
			left--
			b.Suspects[left] = k
		}
	}
	b.Suspects = b.Suspects[left:]
	gone = slices.DeleteFunc(gone, func(g pipeline.Gone) bool { return g.Name == "" })
	if may := r.done.MayDelete; r.scan.MaxDeletions > 0 && int64(len(gone)) > may {
		if r.left == 0 {
			r.done.Stopped = true
			return nil
		}
		for _, g := range gone[may:] { // they are asked for again in the next round
			b.Suspects = append(b.Suspects, suspects.Suspect{Container: g.Container, Name: g.Name})
		}
		gone = gone[:may]
		defer func() { err = cmp.Or(err, errRoundOver) }()
	}
	if len(gone) == 0 {
		return nil
	}
	r.done.MayDelete -= int64(len(gone))
	block, err := t.instance.pipe.Delete(t.work, r.t.epoch.describeRows(), r.rows(), b.Topic, gone)
	if err != nil {
		return err
	}
	r.done.Swept += int64(len(block.Records))
	if err := r.t.out.addBlock(block); err != nil {
		return err
	}
	return r.t.out.commit() // I9: the next block waits in this goroutine for the memory that this one holds
}
