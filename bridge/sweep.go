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
func (l *listing) sweep(ctx context.Context) (finished bool, err error) {
	f := l.t.findings
	if f.sweep == nil || f.sweep.Scan != l.scan.ID {
		f.stopSweep()
		err := l.t.instance.catalog.Sweepable(ctx, l.t.epoch.frontier, &l.t.opts.Filter)
		var never *catalog.UnsweepableError
		if errors.As(err, &never) {
			l.t.opts.Log.Error("the sweep is left out", "scan", l.scan.ID, "error", err)
			l.t.opts.Observer.Failed(l.t.p, err)
			l.done.LeftOut = err.Error()
			return true, nil
		}
		if err != nil {
			return false, l.later(ctx, err)
		}
		f.sweep = l.suspects()
	}
	for {
		s := f.sweep
		if len(s.Current.Suspects) == 0 {
			if s.Current.Last {
				lane := s.Current.Lane
				l.done.Judged = &lane
				l.done.Skipped += s.Current.Skipped
			}
			select {
			case b, ok := <-s.Batches:
				if !ok {
					err := s.Err()
					f.stopSweep() // another one may begin
					return err == nil, l.later(ctx, err)
				}
				s.Current = b
				continue
			case <-ctx.Done():
				return false, nil // of the round, or of the tenure, whose context refuses the commit then
			case <-time.After(sweepPatience): // the others wait, and reading takes long
				return false, nil
			}
		}
		if err := l.judge(ctx, &s.Current); err != nil {
			return false, err
		}
		if l.done.Stopped {
			f.stopSweep()
			return true, nil
		}
		if ctx.Err() != nil { // the rest comes in the next round
			return false, context.Cause(ctx)
		}
	}
}

// suspects starts to look for the keys of this lease's partitions. That outlives the tenure, because reading the topics
// takes longer than a round.
func (l *listing) suspects() *suspects.Reader {
	inst, opts := l.t.instance, l.t.opts
	return suspects.Read(l.t.findings.life, suspects.Options{
		Client: opts.Client, Scan: l.scan, Filter: &opts.Filter, Encoder: inst.catalog.Encoder, Bytes: opts.SweepBytes,
		Patience: readPatience, Turn: inst.pipe.Sweep,
	}, l.done.Unjudged(l.t.epoch.frontier.Topics, l.t.p, inst.leases))
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
		Client: o.Client, Scan: scan, Filter: &o.Filter, Encoder: o.Encoder, Bytes: bytes, Patience: readPatience,
	}, suspects.Account{
		Inventory: o.Inventory, Requests: o.ScanRequests, Topics: o.Topics, Partition: o.Partition,
		Partitions: partitions,
	})
}

// readPatience is for suspects.Options.
var readPatience = 30 * time.Second // tests have a shorter one

const (
	// sweepPatience is how long a round waits for suspects.
	sweepPatience = 100 * time.Millisecond
	// rowsAtOnce is how many suspects are judged together.
	rowsAtOnce = 500
)

// later reports an error of Kafka. The next round tries again: events are to be delivered meanwhile.
func (l *listing) later(ctx context.Context, err error) error {
	if l.t.findings.remember(ctx, l.t.opts.Now(), err) {
		l.t.opts.Observer.Failed(l.t.p, err)
	}
	return nil
}

// judge asks for the blobs of the first suspects, and writes the deletions. Those without an answer when the round ends
// stay in b.
func (l *listing) judge(ctx context.Context, b *suspects.Batch) (err error) {
	t, n := l.t, min(len(b.Suspects), rowsAtOnce)
	gone, asked := make([]pipeline.Gone, n), make([]bool, n)
	l.begin()
	asking, actx := errgroup.WithContext(ctx)
	asking.SetLimit(t.opts.ScanRequests)
	for i, k := range b.Suspects[:n] {
		asking.Go(crash.Try(actx, "sweep", func() error {
			return t.retry(actx, func(ctx context.Context) error {
				there, served, err := t.opts.Inventory.Exists(ctx, k.Container, k.Name)
				if err == nil && !there {
					gone[i] = pipeline.Gone{Container: k.Container, Name: k.Name, Served: served}
				}
				if asked[i] = err == nil; asked[i] {
					l.answer()
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
	if most := int(min(l.mayDelete, int64(len(gone)))); most < len(gone) {
		if l.left == 0 {
			l.done.Stopped = true
			return nil
		}
		for _, g := range gone[most:] { // they are asked for again in the next round
			b.Suspects = append(b.Suspects, suspects.Suspect{Container: g.Container, Name: g.Name})
		}
		gone = gone[:most]
		defer func() { err = cmp.Or(err, errRoundOver) }()
	}
	if len(gone) == 0 {
		return nil
	}
	l.mayDelete -= int64(len(gone))
	block, err := t.instance.pipe.Delete(t.work, l.t.epoch.describeRows(), l.rows(), b.Topic, gone)
	if err != nil {
		return err
	}
	l.done.Swept += int64(len(block.Records))
	if err := l.t.out.addBlock(block); err != nil {
		return err
	}
	return l.t.out.commit() // I9: the next block waits in this goroutine for the memory that this one holds
}
