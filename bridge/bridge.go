package bridge

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/internal/mutation"
	"blobfeed/internal/topics"
	"blobfeed/offsets"
)

// Bridge is one instance.
type Bridge struct {
	Options
	cfg       *offsets.Config
	view      *offsets.View
	manifests *manifests
	leases    int
	start     int64 // end of partition 0 of the offsets topic when this instance started
	client    *kgo.Client
	admin     *kadm.Client
	topics    *topics.Admin
	encoders  encoders
	rivals    rivals

	memory *budget
	pool   pool

	hard   context.Context // ends transactions where they are
	fatal  func(error)     // stops the instance with an error
	finish func()          // stops the instance: its work is done

	mu       sync.Mutex
	workers  map[int32]*worker
	met      map[string]bool // topics that were opened
	joined   bool
	refusals int           // by the group, in a row
	poke     chan struct{} // capacity 1: something changed that --once waits for
}

// prepareTimeout is when an attempt to reach the brokers is given up and reported.
const prepareTimeout = 15 * time.Second

// leaveTimeout is for the group's answer, after the workers have ended.
const leaveTimeout = time.Second

// New returns a bridge that does nothing yet.
func New(o Options) *Bridge {
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Bridge{
		Options: o, cfg: o.lease(), manifests: newManifests(o.Feed, o.PollInterval), workers: map[int32]*worker{}, met: map[string]bool{},
		encoders: encoders{make: o.Encoder, of: map[string]*lazyEncoder{}}, memory: newBudget(o.BufferBytes),
		poke: make(chan struct{}, 1), rivals: rivals{turn: newTurn()},
	}
}

// Run works until stop ends, or, with Once, until everything is delivered; it returns nil then. When stop ends, open
// transactions are committed and the leases handed over; when hard ends, transactions are left to be aborted.
func (b *Bridge) Run(stop, hard context.Context) error {
	stop, cancel := context.WithCancelCause(stop)
	defer cancel(nil)
	b.hard = hard
	b.fatal = func(err error) { cancel(&fatalError{err}) }
	b.finish = func() { cancel(nil) }

	cl, err := kgo.NewClient(b.Client...)
	if err != nil {
		return &SettingsError{Problem: fmt.Sprintf("creating the Kafka client: %v", err)}
	}
	defer cl.Close()
	b.client, b.admin, b.topics = cl, kadm.NewClient(cl), b.topicAdmin(cl)
	if err := b.retry(stop, -1, b.prepare); err != nil {
		return ended(stop, err)
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	viewing, endView := context.WithCancel(hard)
	defer endView()
	wg.Go(func() {
		if err := b.view.Run(viewing, b.Client...); err != nil {
			b.fatal(err)
		}
	})
	wg.Go(func() { b.watchHistory(viewing) })
	leave, err := offsets.Join(b.cfg, b.Name, b.Session, b)
	if err != nil {
		return err
	}
	wg.Go(func() { // whoever holds lease 0 ends the feed; all instances see it
		ended := func(s *offsets.State) bool { return b.caughtUp(s) && s.Frontier != nil && s.Frontier.Ended }
		s, err := b.view.Await(stop, ended)
		if err != nil {
			return
		}
		// What prepare could not compare, for a transaction was open then: an end of other settings is not ours.
		if err := b.Compatible(s.Frontier.Feed, s.Frontier.Settings); err != nil {
			b.fatal(err)
			return
		}
		b.finish()
	})
	if b.Once {
		wg.Go(func() {
			if err := b.awaitAll(stop); err != nil {
				b.fatal(err)
				return
			}
			cancel(nil)
		})
	}
	<-stop.Done()
	mutation.Crash("leave", "begun")
	leaving, left := context.WithTimeout(context.Background(), b.Shutdown+leaveTimeout)
	defer left()
	leave(leaving) // revokes every lease, so the workers commit and end
	b.Revoked(b.held(), false)
	mutation.Crash("leave", "done")
	return ended(stop, nil)
}

// fatalError is the cause of a stop that nobody asked for.
type fatalError struct{ error }

// ended tells a fatal error from a wanted stop.
func ended(stop context.Context, err error) error {
	var fatal *fatalError
	if errors.As(context.Cause(stop), &fatal) {
		return fatal.error
	}
	if stop.Err() != nil {
		return nil
	}
	return err
}

// prepare makes sure that the topics exist and fit the settings.
func (b *Bridge) prepare(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, prepareTimeout, errors.New("the brokers did not answer in time"))
	defer cancel()
	unread, err := b.soleAtStart(ctx)
	if err != nil {
		return err
	}
	leases, created, err := offsets.Ensure(ctx, b.admin, b.cfg.Topic, b.OffsetsPartitions, b.TopicReplication,
		b.TopicPartitions > 0 || b.BrokerCreates, b.Transactional)
	if err != nil {
		return err
	}
	var frontier *offsets.Frontier
	var end int64
	if !created { // else its leaders would not answer for some moments, and there is nothing to read
		if frontier, end, err = b.storedFrontier(ctx, leases); err != nil {
			return err
		}
	}
	if err := b.soleBehind(ctx, frontier, unread); err != nil {
		return err
	}
	if err := b.prepareTopics(ctx, frontier); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.leases, b.start, b.view = leases, end, offsets.NewView(b.cfg.Topic, leases)
	b.view.Trouble = func(err error) { b.Observer.Failed(-1, err) }
	return nil
}

// storedFrontier reads the frontier of an earlier start, nil if there is none, and where its partition ends. A
// transaction may
// be open there, so the frontier may be an old one; then it is not judged here.
func (b *Bridge) storedFrontier(ctx context.Context, leases int) (f *offsets.Frontier, end int64, err error) {
	ends, err := b.admin.ListCommittedOffsets(ctx, b.cfg.Topic)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		return nil, 0, fmt.Errorf("reading the end of %s: %w", b.cfg.Topic, err)
	}
	at := make([]int64, leases) // of the partition that it is in alone: the others may hold a gigabyte
	if o, ok := ends.Lookup(b.cfg.Topic, 0); ok {
		at[0] = o.Offset
	}
	s, err := offsets.ReadTo(ctx, b.cfg.Topic, at, b.Client...)
	if err != nil {
		return nil, 0, err
	}
	if end, err = offsets.EndOf(ctx, b.client, b.cfg.Topic, 0); err != nil || !s.Passed(0, end) {
		return s.Frontier, end, err
	}
	if f = s.Frontier; f != nil {
		if err := b.Compatible(f.Feed, f.Settings); err != nil {
			return nil, 0, err
		}
		if f.Leases != 0 && f.Leases != leases {
			return nil, 0, b.leasesChanged(f.Leases, leases)
		}
	}
	return f, end, nil
}

// caughtUp reports whether s holds what the topic held when this instance started (I10): before that, the view shows
// frontiers
// of the past, which nothing may be decided by.
func (b *Bridge) caughtUp(s *offsets.State) bool { return s.Passed(0, b.start) }

// leasesChanged is the error for another number of partitions than the state is made for: shards would change their
// leases, and
// their cursors would be in the wrong places.
func (b *Bridge) leasesChanged(had, has int) error {
	return &SettingsError{Problem: fmt.Sprintf("%s has %d partitions, and its state is made for %d, which never changes: "+
		"partitions cannot be taken away again, so restart from scratch with another BRIDGE_NAME, or with bridge reset "+
		"(BRIDGE_START says where delivery begins then)", b.cfg.Topic, has, had)}
}

// State is what all instances know of each other; nil until the brokers have answered. It is for those who look on.
func (b *Bridge) State() *offsets.State {
	b.mu.Lock()
	view := b.view
	b.mu.Unlock()
	if view == nil {
		return nil
	}
	s, _, _ := view.Get() // a failed view stops the instance, which says why
	return s
}

// Assigned starts a worker for each lease. There may be none: more instances than leases.
func (b *Bridge) Assigned(leases []int32) {
	b.Observer.Leased(LeasesAssigned, leases)
	b.mu.Lock()
	defer b.mu.Unlock()
	if n := len(leases); n > 0 && int(slices.Max(leases)) >= b.leases {
		b.fatal(b.leasesChanged(b.leases, int(slices.Max(leases))+1))
		return
	}
	for _, p := range leases {
		b.workers[p] = startWorker(b, p)
	}
	b.joined = true
	b.wake()
	if len(leases) > 0 { // every rebalance of the group asks, and most bring nothing
		b.Log.Info("leases assigned", "leases", leases)
	}
}

// Revoked stops the workers of the leases, side by side, and returns when they have ended. A lost lease belongs to
// somebody else already: what its worker has open will be refused, so there is nothing to wait for.
func (b *Bridge) Revoked(leases []int32, lost bool) {
	b.mu.Lock()
	var ws []*worker
	for _, p := range leases {
		if w := b.workers[p]; w != nil {
			ws = append(ws, w)
			delete(b.workers, p)
		}
	}
	if lost {
		b.joined = false // until the group has agreed again: what is not ours may be nobody's
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
		b.Observer.Leased(change, leases)
	}
	if len(ws) > 0 {
		b.Log.Info("leases released", "leases", leases, "lost", lost)
	}
}

// Refused reports what keeps us out of the group. With Once it ends the run like all else that fails: nobody looks after it.
func (b *Bridge) Refused(err error) {
	if errors.Is(err, kerr.InvalidSessionTimeout) {
		b.fatal(&SettingsError{Problem: fmt.Sprintf("the brokers do not take BRIDGE_SESSION_TIMEOUT=%s: want one from their group.min.session.timeout.ms "+
			"(6 s by default) to their group.max.session.timeout.ms (30 min)", b.Session)})
		return
	}
	b.Observer.Failed(-1, err)
	b.mu.Lock()
	if b.joined {
		b.refusals = 0
	}
	b.refusals++
	enough := b.Once && b.refusals >= onceAttempts
	b.mu.Unlock()
	if enough {
		b.fatal(&givenUpError{err})
	}
}

func (b *Bridge) held() []int32 {
	b.mu.Lock()
	defer b.mu.Unlock()
	var ps []int32
	for p := range b.workers {
		ps = append(ps, p)
	}
	return ps
}

func (b *Bridge) wake() { poke(b.poke) }
