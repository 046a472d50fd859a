package bridge

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/bridge/pipeline"
	"blobfeed/internal/catalog"
	"blobfeed/internal/crash"
	"blobfeed/internal/history"
	"blobfeed/internal/pause"
	"blobfeed/internal/plain"
	"blobfeed/internal/testing/mutation"
	"blobfeed/offsets"
	"blobfeed/source"
)

// Bridge is one instance: a member of the group, with a worker for each lease that the group gives it.
type Bridge struct {
	opts     *Options                     // immutable
	instance *instance                    // complete before Run joins the group, immutable from then on
	view     atomic.Pointer[offsets.View] // instance.view, for State

	// Set by Run before it starts anything.
	hard   context.Context // ends transactions where they are
	fatal  func(error)     // stops the instance with an error
	finish func()          // stops the instance: its work is done

	mu       sync.Mutex // guards what follows
	workers  map[int32]*worker
	joined   bool
	refusals int // by the group, in a row
}

// New returns a bridge that does nothing yet.
func New(o Options) *Bridge {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Topics.Claims == nil {
		o.Topics.Claims = catalog.NewClaims()
	}
	inst := &instance{
		opts: &o, cfg: o.lease(), history: history.New(o.Feed.Source, o.Pace.PollInterval),
		pipe: pipeline.New(pipeline.Settings{
			Feed: o.Feed.Source, SkipGaps: o.Feed.SkipGaps, Once: o.Once, Log: o.Log,
			Events: o.Records.Events, Partition: o.Records.Partition, Topics: o.Topics.Names,
			DeadLetter: o.Topics.DeadLetter, MemoryBytes: o.Pace.BufferBytes, Memory: o.Pace.Memory,
			BundleBytes: o.Pace.BundleBytes, BundleReaders: o.Pace.BundleReaders,
		}),
		listing: pause.NewTurn(),
		poke:    make(chan struct{}, 1),
	}
	inst.cfg.Unacknowledged, inst.cfg.Patience = inst.explainWait, patience
	return &Bridge{opts: &o, instance: inst, workers: map[int32]*worker{}}
}

// State is what all instances know of each other; nil until the brokers have answered. It is for observers.
func (b *Bridge) State() *offsets.State {
	view := b.view.Load()
	if view == nil {
		return nil
	}
	s, _, _ := view.Get() // a failed view stops the instance, which reports it
	return s
}

var _ offsets.Holder = (*Bridge)(nil)

// Assigned starts a worker for each lease. There may be none: more instances than leases.
func (b *Bridge) Assigned(leases []int32) {
	defer crash.Of(b.hard).Catch("group")
	mutation.Panic("group")
	b.opts.Observer.Leased(LeasesAssigned, leases)
	b.mu.Lock()
	defer b.mu.Unlock()
	if n := len(leases); n > 0 && int(slices.Max(leases)) >= b.instance.leases {
		b.fatal(b.instance.opts.Stored().LeasesChanged(b.instance.leases, int(slices.Max(leases))+1))
		return
	}
	for _, p := range leases {
		b.workers[p] = startWorker(b.instance, p, b.hard, b.fatal)
	}
	b.joined = true
	poke(b.instance.poke)
	if len(leases) > 0 { // every rebalance of the group asks, and most bring nothing
		b.opts.Log.Info("leases assigned", "leases", leases)
	}
}

// Revoked stops the workers of the leases, side by side, and returns when they have ended. A lost lease belongs to
// somebody else already: what its worker has open will be refused, so there is nothing to wait for.
func (b *Bridge) Revoked(leases []int32, lost bool) {
	defer crash.Of(b.hard).Catch("group")
	b.mu.Lock()
	var ws []*worker
	for _, p := range leases {
		if w := b.workers[p]; w != nil {
			ws = append(ws, w)
			delete(b.workers, p)
		}
	}
	if lost {
		b.joined = false // until the group has agreed again
	}
	b.mu.Unlock()
	for _, w := range ws {
		w.stop(lost)
	}
	for _, w := range ws {
		<-w.ended
	}
	if change := LeasesReleased; len(leases) > 0 || lost {
		if lost {
			change = LeasesLost
		}
		b.opts.Observer.Leased(change, leases)
	}
	if len(ws) > 0 {
		b.opts.Log.Info("leases released", "leases", leases, "lost", lost)
	}
}

// Refused reports what keeps this instance out of the group. With Once, repeated refusals end the run, as other
// repeated failures do, because nobody watches such a run.
func (b *Bridge) Refused(err error) {
	defer crash.Of(b.hard).Catch("group")
	if errors.Is(err, kerr.InvalidSessionTimeout) {
		b.fatal(plain.SettingsErrorf("the brokers do not take a session timeout of %s: want one from "+
			"group.min.session.timeout.ms (6 s by default) to group.max.session.timeout.ms", b.opts.Kafka.Session))
		return
	}
	b.opts.Observer.Failed(-1, err)
	b.mu.Lock()
	if b.joined {
		b.refusals = 0
	}
	b.refusals++
	enough := b.opts.Once && b.refusals >= onceAttempts
	b.mu.Unlock()
	if enough {
		b.fatal(&pause.GivenUpError{Err: err})
	}
}

// leasesHeld returns the leases that have a worker.
func (b *Bridge) leasesHeld() []int32 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Collect(maps.Keys(b.workers))
}

func (b *Bridge) keepsFrontier() bool { return slices.Contains(b.leasesHeld(), 0) }

// leaveTimeout is for the group's answer, after the workers have ended.
const leaveTimeout = time.Second

// Run works until stop ends, or, with Once, until everything is delivered; it returns nil then. When stop ends, open
// transactions are committed and the leases handed over; when hard ends, transactions are left to be aborted.
func (b *Bridge) Run(stop, hard context.Context) error {
	stop, cancel := context.WithCancelCause(stop)
	defer cancel(nil)
	b.hard = hard
	b.fatal = func(err error) { cancel(&fatalError{err}) }
	b.finish = func() { cancel(nil) }

	inst := b.instance
	defer inst.pipe.Close()
	cl, err := kgo.NewClient(b.opts.Kafka.Client...)
	if err != nil {
		return plain.SettingsErrorf("creating the Kafka client: %v", err)
	}
	defer cl.Close()
	inst.client, inst.catalog = cl, catalog.New(b.opts.Catalog(), cl)
	if err := inst.retry(stop, -1, inst.prepare); err != nil {
		return stopReason(stop, err)
	}
	b.view.Store(inst.view)
	var wg sync.WaitGroup
	defer wg.Wait()
	viewing, endView := context.WithCancel(hard)
	defer endView()
	wg.Go(crash.Guard(hard, "view", func() {
		if err := inst.view.Run(viewing, b.opts.Kafka.Client...); err != nil {
			b.fatal(err)
		}
	}))
	wg.Go(crash.Guard(hard, "refresh", func() {
		inst.history.Watch(viewing, history.Watcher{
			View: inst.view, Keeps: b.keepsFrontier, Now: b.opts.Now,
			Failed: func(err error) { b.opts.Observer.Failed(-1, err) },
			Report: func(headroom time.Duration, newest source.Segment) {
				b.opts.Observer.History(History{Headroom: headroom, Newest: newest.Time()})
			},
		})
	}))
	leave, err := offsets.Join(inst.cfg, b.opts.Name, b.opts.Kafka.Session, b)
	if err != nil {
		return err
	}
	wg.Go(crash.Guard(hard, "end", func() { b.finishWhen(stop, inst.awaitEnd) }))
	var all atomic.Bool // is delivered
	if b.opts.Once {
		wg.Go(crash.Guard(hard, "end", func() {
			b.finishWhen(stop, func(ctx context.Context) error {
				err := inst.awaitAll(ctx)
				all.Store(err == nil)
				return err
			})
		}))
	}
	<-stop.Done()
	mutation.Crash("leave", "begun")
	leaving, left := context.WithTimeout(context.Background(), b.opts.Pace.Shutdown+leaveTimeout)
	defer left()
	leave(leaving) // revokes every lease, so the workers commit and end
	b.Revoked(b.leasesHeld(), false)
	mutation.Crash("leave", "done")
	if all.Load() {
		inst.reportDelivered()
	}
	return stopReason(stop, nil)
}

// finishWhen stops the instance when f returns: its work is done, or cannot be.
func (b *Bridge) finishWhen(stop context.Context, f func(context.Context) error) {
	if err := f(stop); err != nil {
		b.fatal(err)
		return
	}
	b.finish()
}

// fatalError is the cause of a stop that nobody asked for.
type fatalError struct{ error }

// stopReason returns a fatal error, and nil after a stop that was asked for.
func stopReason(stop context.Context, err error) error {
	var fatal *fatalError
	if errors.As(context.Cause(stop), &fatal) {
		return fatal.error
	}
	if stop.Err() != nil {
		return nil
	}
	return err
}

// poke makes a channel of capacity 1 full.
func poke(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
