package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"blobfeed/internal/config"
	"blobfeed/internal/crash"
	"blobfeed/internal/setup"
)

// watchEvery is how often to look whether the settings file has changed.
const watchEvery = 5 * time.Second

// follow reads the settings file again at each SIGHUP, and when it has changed, until stop ends.
func (all *bridges) follow(stop, hard context.Context, members *crash.Fleet) {
	signals := make(chan os.Signal, 1) // one more that waits reads what is in the file then
	signal.Notify(signals, syscall.SIGHUP)
	defer signal.Stop(signals)
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
		case <-signals:
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
func (all *bridges) reload(hard context.Context, members *crash.Fleet) {
	all.reloads++
	// Each reload is an operator's act: with its number, the log does not fold the problems of two of them.
	log := all.log.With("reload", all.reloads)
	f, err := setup.RequireFleet()
	if err != nil {
		all.page.Reloaded([]string{err.Error()})
		log.Error("the settings file is rejected; the bridges run on", "error", err)
		return
	}
	var rejected []string
	reject := func(name string, err error) {
		log.Error("the settings of a bridge are rejected", "bridge", name, "error", err,
			"runs_on", all.running[name] != nil)
		rejected = append(rejected, fmt.Sprintf("bridge %s: %v", name, err))
	}
	for _, name := range slices.Sorted(maps.Keys(f.Rejected)) {
		reject(name, errors.Join(f.Rejected[name]...))
	}
	if names := slices.DeleteFunc(f.Common.Changed(all.common), ofBridges); len(names) > 0 {
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

func ofBridges(name string) bool { return !config.OfProcess(name) }

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
		if old != nil && !slices.ContainsFunc(c.Changed(old.config), ofBridges) {
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
