package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"blobfeed/internal/config"
	"blobfeed/internal/ops"
	"blobfeed/internal/progress"
	"blobfeed/internal/setup"
)

func runVerb(ctx context.Context, env config.Env, args []string, stdout, stderr io.Writer) error {
	fs := flags(env, "run", "[--once]", stdout, func(w io.Writer) {
		fmt.Fprint(w, "\nSettings, from the environment or the file of --config (a secret also as <NAME>_FILE):\n")
		_ = config.Usage(w) // dispatch reports a failed write
	})
	once := fs.Bool("once", false, "deliver what the feed holds now, the open segment's events included, then exit")
	if err := parse(fs, args); err != nil {
		return err
	}
	if f, err := setup.LoadFleet(env); f != nil || err != nil {
		return runFleet(ctx, env, f, err, *once, stderr)
	}
	c, err := load(env.Load(true))
	if err != nil {
		return err
	}
	_, err = work(ctx, env, c, shape{once: *once}, 0, stderr)
	return err
}

// work runs an instance until it ends. Keys is the schema id of all keys; 0: each topic has its own.
func work(
	ctx context.Context, env config.Env, c *config.Config, how shape, keys int, stderr io.Writer,
) (*progress.Display, error) {
	log, shown := progress.New(c, stderr)
	if progress.Colours(env, stderr) {
		shown.Colour()
	}
	how.bridges = 1
	i, err := newInstance(c, how, log, shown)
	if err != nil {
		return nil, &settingsError{err}
	}
	setup.PinKeys(&i.options, keys)
	stopServing, err := serve(ctx, c, !how.once, guard(c, log).Wrap(ops.Handler(i.monitor, i.metrics)), log)
	if err != nil {
		return nil, &settingsError{err}
	}
	defer stopServing()
	warnOfTraces(env, log)
	i.announce()
	sampling, stopSampling := context.WithCancel(ctx)
	defer stopSampling()
	go i.monitor.Keep(sampling)
	go i.look(sampling)
	var more []os.Signal
	if !signal.Ignored(syscall.SIGHUP) { // else the bridge runs behind nohup
		more = append(more, syscall.SIGHUP)
	}
	err = supervise(ctx, i.Run, shown, i.monitor.Drain, more...)
	if err == nil {
		shown.Stopped(how.once)
	}
	return shown, err
}

// warnOfTraces reports variables of OpenTelemetry: their author expects traces.
func warnOfTraces(env config.Env, log *slog.Logger) {
	for name := range env {
		if strings.HasPrefix(name, "OTEL_") {
			log.Warn("the OTEL_* variables have no effect: the bridge sends no traces",
				"hint", "see transaction_step_seconds_total in /metrics, or set BRIDGE_LOG_LEVEL=debug")
			return
		}
	}
}
