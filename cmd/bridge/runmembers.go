package main

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"blobfeed/bridge/pipeline"
	"blobfeed/internal/catalog"
	"blobfeed/internal/config"
	"blobfeed/internal/crash"
	"blobfeed/internal/ops"
	"blobfeed/internal/progress"
	"blobfeed/internal/setup"
)

// bridges are those of this process.
type bridges struct {
	once    bool
	path    string // of the settings file
	common  *config.Config
	log     *slog.Logger
	shown   *progress.Progress // of all
	page    *ops.Fleet
	memory  *pipeline.Budget
	claims  *catalog.Claims
	running map[string]*member
	reloads int // so far, also those that were rejected
}

// member is a bridge of this process.
type member struct {
	*instance
	cancel context.CancelFunc // ends what reports on it
}

// create returns a bridge that does nothing yet. Count is the number of bridges of the process.
func (all *bridges) create(c *config.Config, count int) (*instance, error) {
	log, shown := all.shown.Of(c.Name)
	return newInstance(c, shape{once: all.once, bridges: count, memory: all.memory, claims: all.claims}, log, shown)
}

// start runs a bridge, and what reports on it, until it is stopped.
func (all *bridges) start(ctx context.Context, members *crash.Fleet, i *instance) {
	ctx, cancel := context.WithCancel(ctx)
	name := i.config.Name
	all.running[name] = &member{i, cancel}
	all.page.Show(i.monitor, i.metrics)
	i.announce()
	go i.keep(ctx, i.monitor.Keep)
	go i.keep(ctx, i.shown.Show)
	members.Start(name, i)
}

// Failed implements crash.Bridge.
func (i *instance) Failed(err error, again time.Duration) {
	var p *crash.Panic
	if errors.As(err, &p) {
		i.logStack(p)
	}
	err = setup.Advised(i.config, &i.client, err)
	i.monitor.Down(err, again)
	if again == 0 {
		i.log.Error("the bridge has failed", "error", err)
		return
	}
	i.log.Error("the bridge has failed and starts again", "error", err, "pause", again.String())
}
