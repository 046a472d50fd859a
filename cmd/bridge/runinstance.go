package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"blobfeed/bridge"
	"blobfeed/bridge/pipeline"
	"blobfeed/internal/catalog"
	"blobfeed/internal/config"
	"blobfeed/internal/crash"
	"blobfeed/internal/kafka"
	"blobfeed/internal/ops"
	"blobfeed/internal/pause"
	"blobfeed/internal/progress"
	"blobfeed/internal/setup"
	"blobfeed/internal/status"
	"blobfeed/internal/tail"
)

// instance is a bridge of this process, and what shows how it is.
type instance struct {
	config  *config.Config
	options bridge.Options
	monitor *ops.Monitor
	metrics *ops.Metrics
	shown   *progress.Display
	log     *slog.Logger
	client  kafka.Client                  // for advice about errors
	engine  atomic.Pointer[bridge.Bridge] // at work; nil before and after
	panics  sync.Map                      // by place, those whose stack is logged
	pause   time.Duration                 // between two looks at the topics
}

// shape is how an instance runs.
type shape struct {
	once    bool
	replay  bool
	bridges int              // of the process
	memory  *pipeline.Budget // that they share; nil: there is one bridge
	claims  *catalog.Claims  // the same
}

// newInstance returns the bridge of the settings. An error is one of the settings.
func newInstance(
	c *config.Config, how shape, log *slog.Logger, shown *progress.Display,
) (*instance, error) {
	i := &instance{config: c, shown: shown, log: log, pause: lookEvery + time.Duration(how.bridges)*time.Second}
	o, err := setup.Options(c, setup.Observe{
		Storage: i.requested,
		Registry: func(op string, status int, took time.Duration, known int) {
			i.monitor.SchemaRequested(op, status, took, known)
		},
	})
	if err != nil {
		return nil, err
	}
	if i.client, err = setup.Kafka(c, "", 1); err != nil {
		return nil, err
	}
	i.monitor = ops.NewMonitor(c.Name, o.Feed.ID, ops.Info{
		Instance: c.Instance, Version: versionText(), Topic: c.Topic, DeadLetter: o.Topics.DeadLetter,
		Delivery: c.Delivery, Memory: setup.LimitMemory(&o, how.bridges), Replay: how.replay,
		Example: example(c),
	}, c.Tuning.WatchdogTimeout, nil)
	i.monitor.Lists(o.Feed.Source)
	if i.metrics = ops.NewMetrics(i.monitor); how.memory != nil {
		i.metrics = ops.NewLabelled(i.monitor)
		i.monitor.Catch(i.panicked)
	}
	o.Once, o.Pace.Memory, o.Topics.Claims, o.Pace.Frugal = how.once, how.memory, how.claims, how.memory != nil
	o.Kafka.Client = append(o.Kafka.Client, i.metrics.Hook())
	o.Log, o.Observer = log, bridge.Observers{shown, i.monitor, adviser{i}}
	i.options = o
	if how.once {
		shown.Once()
	}
	shown.Look(func() *status.Status { return &i.monitor.Snapshot().Status })
	return i, nil
}

// requested takes note of a request to the storage service. The client retries one without an answer for 14 s or more
// before the engine hears of it, so the log has it before.
func (i *instance) requested(op string, status int, took time.Duration, received int64, err error) {
	fails := i.monitor.Requested(op, status, took, received, err)
	if fails == "" || errors.Is(err, context.Canceled) {
		return
	}
	if err == nil {
		err = errors.New("the storage service " + fails)
	}
	i.log.Warn("the storage service does not serve requests; retrying", "error", err)
}

// example returns a record under the settings, in JSON; nil if they have none.
func example(c *config.Config) *ops.Example {
	o, problems := setup.Record(tail.Legible(c))
	if len(problems) > 0 {
		return nil
	}
	r, err := setup.Example(o)
	if err != nil {
		return nil
	}
	e := &ops.Example{Key: string(r.Key), Value: string(r.Value)}
	for _, h := range r.Headers {
		e.Headers = append(e.Headers, h.Key+": "+string(h.Value))
	}
	return e
}

// Run runs the bridge until stop ends, or there is nothing more to deliver. It can be called again.
func (i *instance) Run(stop, hard context.Context) error {
	b := bridge.New(i.options)
	i.monitor.Watch(b)
	i.engine.Store(b)
	defer i.engine.Store(nil)
	err := b.Run(stop, hard)
	if state := b.State(); err == nil && i.options.Once {
		if state != nil && state.Frontier != nil {
			if why := status.Beyond(state.Frontier, true, time.Now(), status.FromStart); why != "" {
				i.log.Warn("run --once had nothing to deliver", "why", why, "hint", status.MoveBack)
			}
		}
		i.lookAtLast(hard)
	}
	return err
}

// lookEvery is how often to look whether the topics are there; in a process with many bridges, less often.
var lookEvery = 5 * time.Second // tests have a shorter one

// look reports what only the brokers know: topics of records that were deleted, or created again, and which members
// the group has while the instance joins it. Where nothing is delivered, no write fails because of a topic. The first
// look is as early as possible: a topic that was created again is empty until the bridge writes. It also reports a copy
// of the feed that lacks the position, in which nothing is to be read, so that no read fails.
func (i *instance) look(ctx context.Context) {
	var r *status.Reader
	var gone missed
	var others []string
	done := func() {}
	defer func() { done() }()
	for wait := i.pause / 30; pause.For(ctx, wait) == nil; {
		s := i.monitor.Snapshot()
		joins := slices.ContainsFunc(s.Reasons, func(r ops.Reason) bool { return r.Code == "no_member" })
		if !s.Started && !joins {
			continue
		}
		if wait = i.pause; joins {
			wait = i.pause / 5
		}
		if r == nil {
			var err error
			if r, done, err = setup.State(i.config); err != nil {
				r, done = nil, func() {}
				continue // the settings were valid: a secret in a file is not, for now
			}
		}
		if joins {
			others = i.joining(ctx, r, others)
		}
		if s.Started {
			gone = i.missing(ctx, r, &s.Status, gone)
		}
		if i.pause > 10*time.Second { // there are many bridges, and each client takes memory
			done()
			r, done = nil, func() {}
		}
	}
}

// joining returns the members that the group has besides the instance, which joins it, and reports them unless they
// were known. An instance that was killed is a member until its session ends.
func (i *instance) joining(ctx context.Context, r *status.Reader, known []string) []string {
	ctx, cancel := context.WithTimeout(ctx, setup.StateTimeout)
	defer cancel()
	group, _ := r.Group(ctx) // else the engine reports what is wrong with it
	var others []string
	for _, m := range group.Members {
		others = append(others, m.Instance)
	}
	if own := slices.Index(others, i.config.Instance); own >= 0 {
		others = slices.Delete(others, own, own+1)
	}
	if len(others) > 0 && !slices.Equal(others, known) {
		i.log.Info("waiting for the other members of the group", "members", others, "session_timeout",
			i.config.SessionTimeout.String(), "hint", "one that is gone stays a member until its session ends")
	}
	i.monitor.Joins(others, i.config.SessionTimeout)
	return others
}

// missed is what the bridge had, and is not there any more.
type missed struct{ topic, segment status.Problem }

// missing returns what is wrong with the topics of records, and with a copy of the feed, and reports it unless it was
// known.
func (i *instance) missing(ctx context.Context, r *status.Reader, s *status.Status, known missed) missed {
	ctx, cancel := context.WithTimeout(ctx, setup.StateTimeout)
	defer cancel()
	now := missed{r.Gone(ctx, s), r.Older(ctx, s)}
	if p := now.topic; p.Cause != "" && p != known.topic {
		i.log.Warn("a topic of the bridge is gone", "error", p.Cause, "hint", p.Remedy)
	}
	if p := now.segment; p.Cause != "" && p != known.segment {
		i.log.Warn("the feed lacks the position of the bridge", "error", p.Cause, "hint", p.Remedy)
	}
	i.monitor.Gone(now.topic)
	i.monitor.Lacks(now.segment)
	return now
}

// lookAtLast looks at the topics when run --once ends: with nothing to deliver, it can be over before the first look.
func (i *instance) lookAtLast(ctx context.Context) {
	s := i.monitor.Snapshot()
	if !s.Started { // it was stopped before it made its topics
		return
	}
	r, done, err := setup.State(i.config)
	if err != nil {
		return // the bridge has just been there
	}
	defer done()
	i.missing(ctx, r, &s.Status, missed{})
}

// keep runs what reports on a bridge of a fleet until ctx ends, and again a minute after a panic.
func (i *instance) keep(ctx context.Context, report func(context.Context)) {
	ctx = crash.With(ctx, i.panicked)
	for ctx.Err() == nil {
		crash.Guard(ctx, "ops", func() { report(ctx) })()
		_ = pause.For(ctx, time.Minute) // the loop ends with ctx
	}
}

// panicked reports a panic that does not stop the bridge.
func (i *instance) panicked(p *crash.Panic) {
	i.monitor.Failed(-1, p)
	i.logStack(p)
}

// logStack logs the stack of a panic, once for each place.
func (i *instance) logStack(p *crash.Panic) {
	if _, known := i.panics.LoadOrStore(p.Place(), true); !known {
		i.log.Error("a goroutine panicked; report this as a bug", "goroutine", p.Kind, "panic", p.Value,
			"stack", p.Stack)
	}
}

// accepts reports why the bridge at work could not continue with other options: its state has settings that cannot
// change.
func (i *instance) accepts(next *bridge.Options) error {
	b := i.engine.Load()
	if b == nil {
		return nil // its next start judges
	}
	s := b.State()
	if s == nil || s.Frontier == nil {
		return nil
	}
	return next.Stored().Fit(s)
}

// announce logs that the bridge starts.
func (i *instance) announce() {
	c := i.config
	starting := i.log.With("version", versionText(), "name", c.Name, "instance", c.Instance, "feed", i.options.Feed.ID,
		"topic", c.Topic, "delivery", c.Delivery)
	var dangers []string // an error would be {} in JSON
	for _, danger := range c.Insecure() {
		dangers = append(dangers, danger.Error())
	}
	if len(dangers) > 0 {
		starting.Warn("starting", "insecure", dangers)
	} else {
		starting.Info("starting")
	}
	if names := c.Overruled(); len(names) > 0 {
		i.log.Info("the environment sets these settings of the file to other values, and wins", "settings", names)
	}
}

// supervise calls run until it returns or a signal comes: SIGINT, SIGTERM, or one of more. The first one lets it commit
// and hand over, the second stops it at once. Drain is called first, so that probes see that the instance stops.
func supervise(
	ctx context.Context, run func(stop, hard context.Context) error, p *progress.Display, drain func(),
	more ...os.Signal,
) error {
	hard, abort := context.WithCancel(ctx)
	defer abort()
	stop, cancel := context.WithCancel(hard)
	defer cancel()
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, append(more, os.Interrupt, syscall.SIGTERM)...)
	defer signal.Stop(signals)
	go obey(hard, signals, func() { p.Interrupted(); drain(); cancel() }, abort)
	go p.Show(hard)
	go giveBack(hard, p.Events)
	ended := make(chan error, 1)
	go func() { ended <- run(stop, hard) }()
	var err error
	select {
	case err = <-ended:
	case <-hard.Done():
		// Do not wait: brokers that are away would block.
		err = errors.New("stopped by a second signal: open transactions are aborted, and the next start repeats them")
	}
	p.Finish(err)
	return err
}

// echo is the time within which a second signal of the same kind counts as the first: timeout(1), and programs that
// forward the signals of a terminal, send a signal twice.
const echo = 100 * time.Millisecond

// obey calls first at the first signal and second at the second, until ctx ends.
func obey(ctx context.Context, signals <-chan os.Signal, first, second func()) {
	var heard os.Signal
	var at time.Time
	for {
		select {
		case s := <-signals:
			switch {
			case heard == nil:
				heard, at = s, time.Now()
				first()
			case s != heard || time.Since(at) > echo:
				second()
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// idleAfter is the time without deliveries after which memory is given back. The engine frees its buffers after a poll,
// but the runtime alone would collect them only within two minutes, and return the pages later.
const idleAfter = 30 * time.Second

// giveBack returns memory to the system, once each time that deliveries stop, until ctx ends.
func giveBack(ctx context.Context, delivered func() int64) {
	t := time.NewTicker(idleAfter)
	defer t.Stop()
	var i idle
	for {
		select {
		case <-t.C:
			if i.now(delivered()) {
				runtime.GC() // what lies in pools outlives one collection
				debug.FreeOSMemory()
			}
		case <-ctx.Done():
			return
		}
	}
}

// idle detects that a count has stopped.
type idle struct {
	last  int64
	known bool // the stop is reported
}

// now reports whether the count is unchanged since the last call, once for each stop.
func (i *idle) now(count int64) bool {
	still := count == i.last
	first := still && !i.known
	i.last, i.known = count, still
	return first
}
