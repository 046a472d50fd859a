package bridge

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"blobfeed/bridge/pipeline"
	"blobfeed/internal/crash"
	"blobfeed/internal/topics"
	"blobfeed/offsets"
)

// newSweep starts reading partitions, in their order.
func (t *tenure) newSweep(scan *offsets.Scan, partitions []offsets.Lane) *sweep {
	ctx, cancel := context.WithCancel(t.findings.life)
	s := &sweep{scan: scan.ID, end: cancel, batch: make(chan batch), done: make(chan struct{})}
	crash.Go(ctx, "sweep", func() {
		defer close(s.done)
		defer close(s.batch)
		for _, lane := range partitions {
			read := func() error { return t.instance.suspectsOf(ctx, scan, lane, s.batch) }
			if err := crash.Try(ctx, "sweep", read)(); err != nil { // known before the channel is closed
				s.mu.Lock()
				s.err = err
				s.mu.Unlock()
				return
			}
		}
	})
	return s
}

// suspectsOf sends the suspects of one partition, and a last batch, which may be empty. One lease of a process reads at
// a time, and waits until its suspects are dealt with: their hashes are in memory (I9).
func (inst *instance) suspectsOf(ctx context.Context, scan *offsets.Scan, at offsets.Lane, out chan<- batch) error {
	leave, err := inst.pipe.Sweep(ctx)
	if err != nil {
		return err
	}
	defer leave()
	encoder, err := inst.catalog.Encoder(ctx, at.Topic)
	if err != nil {
		return err
	}
	send := func(b batch) error {
		b.Lane = at
		select {
		case out <- b:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	s := &suspects{client: inst.opts.Client, topic: at.Topic, partition: at.Partition, encoder: encoder, scan: scan.ID,
		limit: inst.opts.SweepBytes, patience: readPatience}
	err = s.find(ctx, func(keys []suspect) error {
		keys = slices.DeleteFunc(keys, func(k suspect) bool {
			return scan.Container != "" && k.container != scan.Container || !strings.HasPrefix(k.name, scan.Prefix) ||
				!inst.opts.Filter.Path(k.container, k.name) // no event would delete it, either
		})
		return send(batch{suspects: keys})
	})
	if err != nil {
		return err
	}
	return send(batch{last: true, skipped: s.skipped})
}

// sweep asks for the blobs of suspects while the round lasts, and writes a deletion for each that is gone. It reports
// whether nothing is left.
func (l *listing) sweep(ctx context.Context) (finished bool, err error) {
	f := l.t.findings
	if f.sweep == nil || f.sweep.scan != l.scan.ID {
		f.stopSweep()
		err := l.t.instance.sweepable(ctx, l.t.epoch.frontier)
		var never *unsweepable
		if errors.As(err, &never) {
			l.t.opts.Log.Error("the sweep is left out", "scan", l.scan.ID, "error", err)
			l.t.opts.Observer.Failed(l.t.p, err)
			l.done.LeftOut = err.Error()
			return true, nil
		}
		if err != nil {
			return false, l.later(ctx, err)
		}
		f.sweep = l.t.newSweep(l.scan, l.done.Unjudged(l.t.epoch.frontier.Topics, l.t.p, l.t.instance.leases))
	}
	for {
		s := f.sweep
		if len(s.current.suspects) == 0 {
			if s.current.last {
				lane := s.current.Lane
				l.done.Judged = &lane
				l.done.Skipped += s.current.skipped
			}
			select {
			case b, ok := <-s.batch:
				if !ok {
					err := l.endSweep()
					return err == nil, l.later(ctx, err)
				}
				s.current = b
				continue
			case <-ctx.Done():
				return false, nil // of the round, or of the tenure, which the caller sees
			case <-time.After(sweepPatience): // the others wait, and reading takes long
				return false, nil
			}
		}
		if err := l.judge(ctx, &s.current); err != nil {
			return false, err
		}
		if ctx.Err() != nil { // the rest comes in the next round
			return false, context.Cause(ctx)
		}
	}
}

const (
	// sweepPatience is how long a round waits for suspects.
	sweepPatience = 100 * time.Millisecond
	// rowsAtOnce is how many suspects are judged together.
	rowsAtOnce = 500
)

// endSweep returns why the reader has failed, nil if it has read all. Another one may begin.
func (l *listing) endSweep() error {
	f := l.t.findings
	f.sweep.mu.Lock()
	defer f.stopSweep()
	defer f.sweep.mu.Unlock()
	return f.sweep.err
}

// later reports an error of Kafka. The next round tries again: events are to be delivered meanwhile.
func (l *listing) later(ctx context.Context, err error) error {
	if l.t.findings.remember(ctx, l.t.opts.Now(), err) {
		l.t.opts.Observer.Failed(l.t.p, err)
	}
	return nil
}

// judge asks for the blobs of the first suspects, and writes the deletions. Those without an answer when the round ends
// stay in b.
func (l *listing) judge(ctx context.Context, b *batch) error {
	t, n := l.t, min(len(b.suspects), rowsAtOnce)
	gone, asked := make([]pipeline.Gone, n), make([]bool, n)
	l.begin()
	asking, actx := errgroup.WithContext(ctx)
	asking.SetLimit(t.opts.ScanRequests)
	for i, k := range b.suspects[:n] {
		asking.Go(crash.Try(actx, "sweep", func() error {
			return t.retry(actx, func(ctx context.Context) error {
				there, served, err := t.opts.Inventory.Exists(ctx, k.container, k.name)
				if err == nil && !there {
					gone[i] = pipeline.Gone{Container: k.container, Name: k.name, Served: served}
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
	for i, k := range slices.Backward(b.suspects[:n]) {
		if !asked[i] {
			left--
			b.suspects[left] = k
		}
	}
	b.suspects = b.suspects[left:]
	gone = slices.DeleteFunc(gone, func(g pipeline.Gone) bool { return g.Name == "" })
	if len(gone) == 0 {
		return nil
	}
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

// unsweepable is why topics cannot be swept.
type unsweepable struct{ error }

// sweepable returns an unsweepable if the topics cannot be swept.
func (inst *instance) sweepable(ctx context.Context, f *offsets.Frontier) error {
	if inst.opts.Shared {
		return &unsweepable{errors.New("other accounts write to these topics, too (BRIDGE_TOPIC_SHARED): their keys " +
			"cannot be told apart")}
	}
	if !inst.opts.Filter.Deletions() {
		return &unsweepable{errors.New("the filter leaves out BlobDeleted (BRIDGE_EVENT_TYPES), and a sweep writes " +
			"deletions")}
	}
	names := slices.Sorted(maps.Keys(f.Topics))
	for _, name := range names {
		encoder, err := inst.catalog.Encoder(ctx, name)
		if err != nil {
			return err
		}
		if !encoder.TellsDeletions() {
			return &unsweepable{errors.New("records of BRIDGE_ENVELOPE=key_only do not say which keys are deleted: " +
				"set BRIDGE_DELETES=tombstone, in a new topic")}
		}
	}
	err := inst.catalog.Admin.KeepsKeys(ctx, names...)
	if errors.Is(err, topics.ErrForgets) {
		return &unsweepable{err}
	}
	return err
}
