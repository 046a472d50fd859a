//go:build unix

package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"blobfeed/integration/stack"
)

// Options say what a run is.
type Options struct {
	Seed    uint64
	Faults  int
	Repeats bool   // DELIVERY=at_least_once: no seeks, which no marker ends, and no growth, after which keys may move
	Program string // path
	Dir     string // for logs
	Logf    func(string, ...any)
}

// Stack is what the stack of a run needs.
var Stack = stack.Options{Brokers: brokers, Links: slots}

// The limits of what may take how long.
const (
	endLimit    = 5 * time.Minute // for the rest, after the last fault
	stopLimit   = 30 * time.Second
	settleLimit = 2 * time.Minute // for brokers to be whole again
)

type run struct {
	*World
	Options
	plan  []Fault
	judge *Judge
	admin *kadm.Client
	rest  time.Duration // from the last fault's end until everything was there
	first time.Time     // begin of the feed
	work  chan func()   // of the feeder

	seeking    sync.Mutex     // held while a seek is at work
	scans      atomic.Int64   // that were accepted
	brokerWork sync.WaitGroup // starts of brokers
	stopping   sync.WaitGroup // of instances and seeks
	mu         sync.Mutex
	failures   []string
}

// Run carries out the plan of a seed and judges what came of it. The error is of the run, not of the program: then
// nothing is known.
func Run(ctx context.Context, s *stack.Stack, o Options) (_ *Report, err error) {
	own := spec
	own.Seed = o.Seed
	name := fmt.Sprintf("chaos-%d-%d", o.Seed, time.Now().UnixNano())
	onGap := []string{"continue", "rescan"}[o.Seed%2]
	delivery, plan := "exactly_once", Plan(o.Seed, o.Faults)
	if o.Repeats {
		delivery = "at_least_once"
		plan = slices.DeleteFunc(plan, func(f Fault) bool { return f.Kind == Seek || f.Kind == Grow })
	}
	w, err := NewWorld(ctx, s, o.Program, o.Dir, name, own, "BRIDGE_OFFSETS_LEASES=8", "BRIDGE_LOG_LEVEL=debug",
		"BRIDGE_INITIAL_SCAN=yes", "BRIDGE_ON_GAP="+onGap, "BRIDGE_DELIVERY="+delivery)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	r := &run{World: w, Options: o, plan: plan, work: make(chan func())}
	rng := rand.New(rand.NewPCG(o.Seed, 1))
	w.fill(rng)
	grown := 0
	for _, f := range plan {
		if f.Kind == Grow {
			grown++
		}
	}
	if r.judge, err = newJudge(s.KafkaBrokers, w.Topic, partitions+grown, o.Repeats); err != nil {
		return nil, err
	}
	defer r.judge.Close()
	r.judge.onStall = func(d time.Duration) { o.Logf("nothing came for %s", d.Round(10*time.Millisecond)) }
	r.admin = kadm.NewClient(r.judge.cl)
	if err := w.feed.Open(ctx); err != nil {
		return nil, err
	}

	r.first = w.feed.Segment()

	began := time.Now()
	reading, endReading := context.WithCancel(ctx)
	feeding, endFeeding := context.WithCancel(ctx)
	faulting, stopFaults := context.WithCancel(ctx) // if the feeder fails
	var sides sync.WaitGroup
	var readErr, feedErr error
	sides.Go(func() { readErr = r.judge.Read(reading) })
	var fed sync.WaitGroup
	fed.Go(func() {
		feedErr = (&feeder{World: w, rng: rng, judge: r.judge, work: r.work}).run(ctx, feeding)
		stopFaults()
	})
	err = r.faults(faulting)
	last := time.Now()
	if err == nil {
		err = r.regroup(ctx) // under load
	}
	endFeeding()
	fed.Wait()
	if err = errors.Join(err, feedErr); err == nil {
		err = r.end(ctx, last)
	}
	endReading()
	sides.Wait()
	if err = errors.Join(err, readErr); err != nil {
		return nil, err
	}
	return r.report(time.Since(began)), nil
}

// faults carries out the plan.
func (r *run) faults(ctx context.Context) error {
	for i := range fewest + 1 {
		if _, err := r.Start(i); err != nil {
			return err
		}
	}
	at := time.Duration(0)
	n := 0
	for _, s := range steps(r.plan) {
		select {
		case <-time.After(s.at - at):
		case <-ctx.Done():
			return ctx.Err()
		}
		at = s.at
		if s.undo {
			if err := r.undo(ctx, s.fault); err != nil {
				return fmt.Errorf("undoing %v: %w", s.fault, err)
			}
			continue
		}
		n++
		r.Logf("%6.1fs  fault %d: %v; %d events wait", s.at.Seconds(), n, s.fault, r.judge.Left())
		if err := r.do(ctx, s.fault); err != nil {
			return fmt.Errorf("%v: %w", s.fault, err)
		}
	}
	return nil
}

func (r *run) do(ctx context.Context, f Fault) error {
	switch f.Kind {
	case Join:
		_, err := r.Start(f.Instance)
		return err
	case Cut:
		r.Cut(f.Instance, f.Broker, f.Mode)
		return nil
	case Kill, Stop, Pause, Seek, Retain, Trim:
		return r.hit(ctx, f)
	case Scan:
		r.scan(f)
		return nil
	case Grow:
		return r.grow(ctx)
	case Storm:
		r.storm.Store(time.Now().Add(f.Hold).UnixNano())
		return nil
	}
	if err := r.settle(ctx); err != nil {
		return err
	}
	switch f.Kind {
	case KillBroker:
		return r.stack.KillBroker(f.Broker)
	case StopBroker:
		if err := r.stack.StopBroker(f.Broker); err != nil { // a busy machine: it is killed, which is a fault, too
			r.Logf("%v", err)
		}
		return nil
	}
	return r.stack.PauseBroker(f.Broker)
}

func (r *run) hit(ctx context.Context, f Fault) error {
	i := r.Running(f.Instance)
	switch f.Kind {
	case Kill:
		r.leave(i)
		i.Kill()
	case Pause, Retain, Trim:
		return i.Signal(syscall.SIGSTOP)
	case Seek:
		if err := i.Signal(syscall.SIGSTOP); err != nil { // it wakes up behind the move
			return err
		}
		return r.seek(ctx, f)
	case Stop:
		if err := r.settle(ctx); err != nil {
			return err
		}
		r.leave(i)
		r.stopping.Go(func() { r.stop(i) })
	}
	return nil
}

// stop ends an instance in order.
func (r *run) stop(i *Instance) {
	began := time.Now()
	err := i.Signal(syscall.SIGTERM)
	if err == nil {
		err = i.Wait(stopLimit)
	}
	if err != nil {
		r.fail(err.Error())
		return
	}
	r.Logf("%s stopped after %s", i.Name, time.Since(began).Round(time.Millisecond))
}

func (r *run) fail(problem string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failures = append(r.failures, problem)
}

func (r *run) undo(ctx context.Context, f Fault) error {
	switch f.Kind {
	case Cut:
		r.Cut(f.Instance, f.Broker, Open)
	case Pause, Seek, Retain, Trim:
		if f.removes() {
			if err := r.retain(ctx, f); err != nil {
				return err
			}
		}
		if i := r.Running(f.Instance); i != nil {
			return i.Signal(syscall.SIGCONT)
		}
	case PauseBroker:
		return r.stack.ResumeBroker(f.Broker)
	case KillBroker, StopBroker:
		r.brokerWork.Go(func() { // it takes seconds, in which the plan goes on
			if err := r.stack.StartBroker(ctx, f.Broker); err != nil {
				r.fail(err.Error())
			}
		})
	}
	return nil
}

// settle returns when every broker is up and has everything.
func (r *run) settle(ctx context.Context) error {
	r.brokerWork.Wait()
	return Await(ctx, settleLimit, "all replicas in sync", func(ctx context.Context) (bool, error) {
		m, err := r.admin.Metadata(ctx)
		if err != nil {
			return false, err
		}
		whole := len(m.Brokers) == brokers
		m.Topics.EachPartition(func(p kadm.PartitionDetail) {
			whole = whole && p.Err == nil && len(p.ISR) == len(p.Replicas)
		})
		return whole, nil
	})
}

// regroup waits until brokers and instances are whole again.
func (r *run) regroup(ctx context.Context) error {
	if err := r.settle(ctx); err != nil {
		return err
	}
	r.stopping.Wait()
	var problem string
	if err := Await(ctx, settleLimit, "a group of all instances", func(ctx context.Context) (whole bool, err error) {
		problem, err = r.standing(ctx)
		return problem == "", err
	}); err != nil {
		r.fail(fmt.Sprintf("%v: %s", err, problem))
	}
	return nil
}

// end waits for the rest, stops what runs, and reads to the end.
func (r *run) end(ctx context.Context, last time.Time) error {
	if err := Await(ctx, endLimit, "all events and the last marker", func(context.Context) (bool, error) {
		return r.judge.Left() == 0 && r.judge.Newest() == r.promise(), nil
	}); err != nil {
		r.fail(fmt.Sprintf("%v: %d events are missing, the last marker is %s, want %s",
			err, r.judge.Left(), r.judge.Newest(), r.promise()))
	}
	r.rest = time.Since(last)
	if err := r.repair(ctx); err != nil {
		r.fail(err.Error())
	}
	for _, f := range r.Deserters() {
		r.fail(f)
	}
	for _, i := range r.running() {
		r.leave(i)
		r.stopping.Go(func() { r.stop(i) })
	}
	r.stopping.Wait()
	if err := Await(ctx, settleLimit, "read to the end", r.judge.Drained); err != nil {
		return err
	}
	env := append(r.env, "BRIDGE_KAFKA_BROKERS="+r.stack.KafkaBrokers[0])
	text, err := Verify(r.Program, r.Dir, endLimit, []string{"--feed", "--account", "--wait", "10s"}, env...)
	r.Logf("bridge verify --feed --account:\n%s", text)
	if err != nil {
		r.fail(err.Error())
	}
	return nil
}
