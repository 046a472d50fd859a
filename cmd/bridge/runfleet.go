package main

import (
	"context"
	"fmt"
	"io"

	"blobfeed/bridge"
	"blobfeed/bridge/pipeline"
	"blobfeed/internal/catalog"
	"blobfeed/internal/config"
	"blobfeed/internal/crash"
	"blobfeed/internal/ops"
	"blobfeed/internal/progress"
	"blobfeed/internal/setup"
)

// runFleet runs all bridges of a settings file until they end.
func runFleet(ctx context.Context, f *config.Fleet, problem error, once bool, stderr io.Writer) error {
	if problem == nil {
		problem = f.Err()
	}
	if problem != nil {
		return &settingsError{fmt.Errorf("settings:\n%w", problem)}
	}
	all := &bridges{once: once, path: f.Path, common: f.Common, claims: catalog.NewClaims(),
		running: map[string]*member{}}
	all.log, all.shown = progress.ForMany(f.Common, stderr)
	all.page = ops.NewFleet(ops.Info{Instance: f.Common.Instance, Version: versionText()})
	var sizes bridge.Options // of the process
	setup.LimitMemory(&sizes, len(f.Bridges))
	all.memory = pipeline.NewBudget(sizes.Pace.BufferBytes)
	var made []*instance
	for _, c := range f.Bridges {
		i, err := all.create(c, len(f.Bridges))
		if err != nil {
			return &settingsError{fmt.Errorf("settings:\nbridge %s: %w", c.Name, err)}
		}
		made = append(made, i)
	}
	stopServing, err := serve(ctx, f.Common, !once, guard(f.Common, all.log).Wrap(ops.FleetHandler(all.page)), all.log)
	if err != nil {
		return &settingsError{err}
	}
	defer stopServing()
	warnOfTraces(all.log)
	all.log.Info("starting", "version", versionText(), "bridges", len(made), "file", f.Path)
	err = supervise(ctx, func(stop, hard context.Context) error {
		members := crash.NewFleet(hard, once)
		for _, i := range made {
			all.start(hard, members, i)
		}
		if !once {
			go all.follow(stop, hard, members)
		}
		return members.Wait(stop)
	}, all.shown, all.page.Drain)
	if err == nil {
		all.shown.Stopped(once)
	}
	return err
}
