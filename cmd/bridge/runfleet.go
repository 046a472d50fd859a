package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"time"

	"blobfeed/bridge"
	"blobfeed/bridge/pipeline"
	"blobfeed/internal/config"
	"blobfeed/internal/fleet"
	"blobfeed/internal/ops"
	"blobfeed/internal/progress"
	"blobfeed/internal/remedy"
	"blobfeed/internal/setup"
	"blobfeed/internal/tracing"
)

// bridges are those of this process.
type bridges struct {
	once    bool
	log     *slog.Logger
	shown   *progress.Progress // of all
	page    *ops.Fleet
	memory  *pipeline.Budget
	traces  *tracing.Tracer // nil: none
	running map[string]*member
}

// member is a bridge of this process.
type member struct {
	*instance
	cancel context.CancelFunc // ends what reports on it
}

// runFleet runs all bridges of a settings file until they end.
func runFleet(ctx context.Context, f *config.Fleet, problem error, once bool, stderr io.Writer) error {
	if problem == nil {
		problem = f.Err()
	}
	if problem != nil {
		return &usageError{fmt.Errorf("settings:\n%w", problem)}
	}
	all := &bridges{once: once, running: map[string]*member{}}
	all.log, all.shown = progress.ForMany(f.Common, stderr)
	all.page = ops.NewFleet(ops.Info{Instance: f.Common.Instance, Version: versionText()})
	var err error
	all.traces, err = tracing.Start(ctx, tracing.Info{Instance: f.Common.Instance, Version: versionText()}, all.log)
	if err != nil {
		return &usageError{err}
	}
	if all.traces != nil {
		defer all.traces.Stop()
	}
	var sizes bridge.Options // of the process
	setup.LimitMemory(&sizes, len(f.Bridges))
	all.memory = pipeline.NewBudget(sizes.BufferBytes)
	var made []*instance
	for _, c := range f.Bridges {
		i, err := all.create(c, len(f.Bridges))
		if err != nil {
			return &usageError{fmt.Errorf("settings:\nbridge %s: %w", c.Name, err)}
		}
		made = append(made, i)
	}
	stopServing, err := serve(ctx, f.Common, !once, guard(f.Common, all.log).Wrap(ops.FleetHandler(all.page)), all.log)
	if err != nil {
		return &usageError{err}
	}
	defer stopServing()
	all.log.Info("starting", "version", versionText(), "bridges", len(made), "file", f.Path)
	err = supervise(ctx, func(stop, hard context.Context) error {
		members := fleet.New(hard, once)
		for _, i := range made {
			all.start(hard, members, i)
		}
		return members.Wait(stop)
	}, all.shown, all.page.Drain)
	if err == nil {
		all.log.Info("stopped", "events", all.shown.Events(), "records", all.shown.Records())
	}
	return err
}

// create returns a bridge that does nothing yet. Count is the number of bridges of the process.
func (all *bridges) create(c *config.Config, count int) (*instance, error) {
	log, shown := all.shown.Of(c.Name)
	i, err := newInstance(c, shape{once: all.once, bridges: count, memory: all.memory}, log, shown)
	if err == nil && all.traces != nil {
		i.options.Observer = append(i.options.Observer, all.traces.Of(c.Name, c.Topic))
	}
	return i, err
}

// start runs a bridge, and what reports on it, until it is stopped.
func (all *bridges) start(ctx context.Context, members *fleet.Fleet, i *instance) {
	ctx, cancel := context.WithCancel(ctx)
	name := i.config.Name
	all.running[name] = &member{i, cancel}
	all.page.Show(i.monitor, i.metrics)
	i.announce()
	go i.monitor.Keep(ctx)
	go i.shown.Show(ctx)
	members.Start(name, i)
}

// Failed implements fleet.Bridge.
func (i *instance) Failed(err error, again time.Duration) {
	err = remedy.With(err, i.client.Advice(err))
	i.monitor.Down(err, again)
	if again == 0 {
		i.log.Error("the bridge has failed", "error", err)
		return
	}
	i.log.Error("the bridge has failed and starts again", "error", err, "pause", again.String())
}
