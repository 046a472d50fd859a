package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"blobfeed/bridge"
	"blobfeed/bridge/pipeline"
	"blobfeed/internal/catalog"
	"blobfeed/internal/config"
	"blobfeed/internal/crash"
	"blobfeed/internal/ops"
	"blobfeed/internal/plain"
	"blobfeed/internal/progress"
	"blobfeed/internal/setup"
	"blobfeed/internal/status"
)

// runFleet runs all bridges of a settings file until they end.
func runFleet(
	ctx context.Context, env config.Env, f *config.Fleet, problem error, once bool, stderr io.Writer,
) error {
	if problem == nil {
		problem = f.Err()
	}
	if problem == nil && once && len(f.Bridges) == 0 { // without --once, the next reload may bring some
		problem = fmt.Errorf("%s has no bridges, so run --once has nothing to deliver: add one below bridges", f.Path)
	}
	if problem != nil {
		return invalidSettings(problem)
	}
	all := &bridges{env: env, once: once, path: f.Path, common: f.Common, claims: catalog.NewClaims(),
		running: map[string]*member{}}
	all.log, all.shown = progress.ForMany(f.Common, stderr)
	all.page = ops.NewFleetMonitor(ops.Info{Instance: f.Common.Instance, Version: versionText()})
	var sizes bridge.Options // of the process
	setup.LimitMemory(&sizes, len(f.Bridges))
	all.memory = pipeline.NewBudget(sizes.Pace.BufferBytes)
	var made []*instance
	for _, c := range f.Bridges {
		i, err := all.create(c, len(f.Bridges))
		if err != nil {
			return invalidSettings(fmt.Errorf("bridge %s: %w", c.Name, err))
		}
		made = append(made, i)
	}
	reloads := make(chan os.Signal, 1) // one more that waits reads what is in the file then
	if !once {
		signal.Notify(reloads, syscall.SIGHUP) // before anybody can see the process: it would end it
		defer signal.Stop(reloads)
	}
	stopServing, err := serve(ctx, f.Common, !once, guard(f.Common, all.log).Wrap(ops.FleetHandler(all.page)), all.log)
	if err != nil {
		return &settingsError{err}
	}
	defer stopServing()
	warnOfTraces(env, all.log)
	all.log.Info("starting", "version", versionText(), "bridges", len(made), "file", f.Path)
	if len(made) == 0 {
		all.log.Warn("the settings file has no bridges, so nothing is delivered", "file", f.Path,
			"hint", "add one below bridges; the file is read again when it changes")
	}
	err = supervise(ctx, func(stop, hard context.Context) error {
		members := crash.NewSupervisor(hard, once)
		for _, i := range made {
			all.start(hard, members, i)
		}
		if !once {
			go all.follow(stop, hard, members, reloads)
		}
		return members.Wait(stop)
	}, all.shown, all.page.Drain)
	if err == nil {
		all.shown.Stopped(once)
	}
	return err
}

// bridges are those of this process.
type bridges struct {
	env     config.Env
	once    bool
	path    string // of the settings file
	common  *config.Config
	log     *slog.Logger
	shown   *progress.Display // of all
	page    *ops.FleetMonitor
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
func (all *bridges) start(ctx context.Context, members *crash.Supervisor, i *instance) {
	ctx, cancel := context.WithCancel(ctx)
	name := i.config.Name
	all.running[name] = &member{i, cancel}
	all.page.Show(i.monitor, i.metrics)
	i.announce()
	go i.keep(ctx, i.monitor.Keep)
	go i.keep(ctx, i.look)
	go i.keep(ctx, i.shown.Show)
	members.Start(name, i)
}

// Failed implements crash.Bridge.
func (i *instance) Failed(err error, again time.Duration) {
	if p, is := errors.AsType[*crash.Panic](err); is {
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

// watchEvery is how often to look whether the settings file has changed.
const watchEvery = 5 * time.Second

// follow reads the settings file again at each signal, and when it has changed, until stop ends.
func (all *bridges) follow(stop, hard context.Context, members *crash.Supervisor, reloads <-chan os.Signal) {
	t := time.NewTicker(watchEvery)
	defer t.Stop()
	file := watchFile(all.path)
	reload := crash.Guard(crash.With(hard, func(p *crash.Panic) {
		all.log.Error("reading the settings again failed; report this as a bug", "panic", p.Value, "stack", p.Stack)
	}), "reload", func() {
		file.Read() // before its content: what changes meanwhile is another change
		all.reload(hard, members)
	})
	for {
		select {
		case <-reloads:
			reload()
		case <-t.C:
			if file.Changed() {
				reload()
			}
		case <-stop.Done():
			return
		}
	}
}

// reload starts the bridges that are new in the settings file, restarts those that have changed, and stops those that
// are gone. The others do not notice. A bridge whose settings have problems keeps running with its former ones.
func (all *bridges) reload(hard context.Context, members *crash.Supervisor) {
	all.reloads++
	// Each reload is an operator's act: with its number, the log does not fold the problems of two of them.
	log := all.log.With("reload", all.reloads)
	f, err := setup.RequireFleet(all.env)
	if err != nil {
		text, do := plain.SplitRemedy(err)
		all.page.Reloaded([]status.Problem{{Cause: text, Remedy: do}})
		log.Error("the settings file is rejected; the bridges run on", "error", err)
		return
	}
	var rejected []status.Problem
	reject := func(name string, err error) {
		log.Error("the settings of a bridge are rejected", "bridge", name, "error", err,
			"runs_on", all.running[name] != nil)
		text, do := plain.SplitRemedy(err)
		rejected = append(rejected, status.Problem{Cause: "bridge " + name + ": " + text, Remedy: do})
	}
	for _, name := range slices.Sorted(maps.Keys(f.Rejected)) {
		reject(name, errors.Join(f.Rejected[name]...))
	}
	if names := slices.DeleteFunc(f.Common.Changed(all.common), config.OfBridge); len(names) > 0 {
		log.Warn("these settings need a restart of the process", "settings", names)
	}
	made, ends, changed := all.compare(f, reject)
	members.Stop(ends...)
	for _, name := range ends {
		all.running[name].cancel()
		delete(all.running, name)
		all.page.Hide(name)
	}
	for _, i := range made {
		all.start(hard, members, i)
	}
	all.page.Reloaded(rejected)
	log.Info("settings reloaded", "bridges", len(all.running), "added", len(made)-changed,
		"changed", changed, "removed", len(ends)-changed, "rejected", len(rejected))
}

// compare returns the bridges to start, and the names of those to stop before; changed are in both.
func (all *bridges) compare(
	f *config.Fleet, reject func(name string, err error),
) (made []*instance, ends []string, changed int) {
	for name := range maps.Keys(all.running) {
		known := func(c *config.Config) bool { return c.Name == name }
		if f.Rejected[name] == nil && !slices.ContainsFunc(f.Bridges, known) {
			ends = append(ends, name)
		}
	}
	for _, c := range f.Bridges {
		old := all.running[c.Name]
		if old != nil && !slices.ContainsFunc(c.Changed(old.config), config.OfBridge) {
			continue
		}
		i, err := all.create(c, len(f.Bridges))
		if err == nil && old != nil {
			err = old.accepts(&i.options) // before it stops: it could not start again
		}
		if err != nil {
			reject(c.Name, err)
			continue
		}
		if made = append(made, i); old != nil {
			ends = append(ends, c.Name)
			changed++
		}
	}
	return made, ends, changed
}

// watchedFile is a settings file that may change, or be replaced: Kubernetes swaps a symlink above a mounted ConfigMap.
// It looks at inode, time and size, since not every file system reports changes.
type watchedFile struct {
	path       string
	read, next os.FileInfo // as it was read, and as it was at the last look; nil: it was not there
}

// watchFile returns a file that was just read.
func watchFile(path string) *watchedFile {
	f := &watchedFile{path: path}
	f.Read()
	return f
}

// Read takes note of a file that is read now.
func (f *watchedFile) Read() {
	f.read, _ = os.Stat(f.path)
	f.next = f.read
}

// Changed reports whether the file is another one than was read, and has been for two looks: one that is being written
// is not whole.
func (f *watchedFile) Changed() bool {
	now, err := os.Stat(f.path)
	if err != nil {
		return false // it is being replaced, or gone: the bridges run on
	}
	still := same(f.next, now)
	f.next = now
	return still && !same(f.read, now)
}

func same(a, b os.FileInfo) bool {
	return a != nil && os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size()
}
