package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"blobfeed/bridge"
	"blobfeed/internal/config"
	"blobfeed/internal/ops"
	"blobfeed/internal/progress"
	"blobfeed/internal/setup"
	"blobfeed/internal/status"
	"blobfeed/internal/tracing"
)

func runVerb(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	fs := flags("run", "[--once]", stdout, func(w io.Writer) {
		fmt.Fprint(w, "\nSettings, from the environment or the file of --config (a secret also as <NAME>_FILE):\n")
		_ = config.Usage(w) // dispatch reports a failed write
	})
	once := fs.Bool("once", false, "deliver what the feed holds now, the open segment's events included, then exit")
	if err := parse(fs, args); err != nil {
		return err
	}
	c, err := load(config.Load(true))
	if err != nil {
		return err
	}
	_, err = work(ctx, c, *once, 0, stderr)
	return err
}

// work runs an instance until it ends. Keys is the schema id of all keys; 0: each topic has its own.
func work(ctx context.Context, c *config.Config, once bool, keys int, stderr io.Writer) (*progress.Progress, error) {
	log, shown := progress.New(c, stderr)
	var monitor *ops.Monitor
	o, err := setup.Options(c, setup.Observe{
		Storage: func(op string, status int, took time.Duration, received int64) {
			monitor.Requested(op, status, took, received)
		},
		Registry: func(op string, status int, took time.Duration, known int) {
			monitor.SchemaRequested(op, status, took, known)
		},
	})
	if err != nil {
		return nil, &usageError{err}
	}
	o.Once = once
	setup.PinKeys(&o, keys)
	monitor = ops.NewMonitor(c.Name, o.FeedID, ops.Info{
		Instance: c.Instance, Version: versionText(), Topic: c.Topic, DeadLetter: o.DeadLetter,
		Delivery: c.Delivery, Memory: setup.LimitMemory(&o, 1),
	}, c.Tuning.WatchdogTimeout, nil)
	metrics := ops.NewMetrics(monitor)
	o.Client = append(o.Client, metrics.Hook())
	client, err := setup.Kafka(c, "", 1)
	if err != nil {
		return nil, &usageError{err}
	}
	observers := bridge.Observers{advisedLog{shown, &client}, advisedMonitor{monitor, &client}}
	traces, err := tracing.Start(ctx, tracing.Info{
		Name: c.Name, Instance: c.Instance, Version: versionText(), Topic: c.Topic,
	}, log)
	if err != nil {
		return nil, &usageError{err}
	}
	if traces != nil {
		defer traces.Stop()
		observers = append(observers, traces)
	}
	o.Log, o.Observer = log, observers
	stopServing, err := serve(ctx, c, !once, guard(c, log).Wrap(ops.Handler(monitor, metrics)), log)
	if err != nil {
		return nil, &usageError{err}
	}
	defer stopServing()
	starting := log.With("version", versionText(), "name", c.Name, "instance", c.Instance, "feed", o.FeedID,
		"topic", c.Topic, "delivery", c.Delivery)
	if dangers := c.Insecure(); len(dangers) > 0 {
		starting.Warn("starting", "insecure", dangers)
	} else {
		starting.Info("starting")
	}
	b := bridge.New(o)
	monitor.Watch(b)
	shown.Judge(func() status.Verdict { return monitor.Snapshot().Verdict })
	sampling, stopSampling := context.WithCancel(ctx)
	defer stopSampling()
	go monitor.Keep(sampling)
	err = supervise(ctx, b, shown, monitor.Drain)
	if err == nil {
		log.Info("stopped", "events", shown.Events(), "records", shown.Records())
	}
	return shown, err
}

// supervise runs b until it ends or a signal comes. The first signal lets it commit and hand over, the second stops it
// at once. Drain is called first, so that probes see that the instance stops.
func supervise(ctx context.Context, b *bridge.Bridge, p *progress.Progress, drain func()) error {
	hard, abort := context.WithCancel(ctx)
	defer abort()
	stop, cancel := context.WithCancel(hard)
	defer cancel()
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	go obey(hard, signals, func() { drain(); cancel() }, abort)
	go p.Show(hard)
	go giveBack(hard, p.Events)
	ended := make(chan error, 1)
	go func() { ended <- b.Run(stop, hard) }()
	var err error
	select {
	case err = <-ended:
	case <-hard.Done():
		// Do not wait: brokers that are away would block.
		err = errors.New("stopped by a second signal: open transactions are aborted, and the next start repeats them")
	}
	p.Finish()
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
