package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"blobfeed/internal/plain"
	"blobfeed/internal/progress"
	"blobfeed/internal/setup"
	"blobfeed/internal/status"
)

const statusHelp = `
Reads only the topic <BRIDGE_NAME>.offsets and the consumer group, so it works from anywhere that reaches the brokers.
Needs BRIDGE_KAFKA_BROKERS, BRIDGE_NAME unless it is the default, and the settings for TLS and SASL.
`

func statusVerb(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	usage := "[--all] [--output text|json] [--check] [--watch DURATION]"
	fs := flags("status", usage, stdout, func(w io.Writer) { fmt.Fprint(w, statusHelp) })
	all := fs.Bool("all", false, "report on every bridge of the settings file, a line for each")
	check := fs.Bool("check", false, "exit code 1 if the bridge is degraded or nobody is running")
	watch := fs.Duration("watch", 0, "repeat the report at this interval until stopped")
	asJSON, err := parseOutput(fs, args, "one document per line")
	if err != nil {
		return err
	}
	if *watch < 0 {
		return &usageError{fmt.Errorf("--watch %s: want a duration such as 2s", *watch)}
	}
	if *check && *watch > 0 {
		return &usageError{errors.New("--check reports once: remove --watch")}
	}
	if *all && *watch > 0 {
		return &usageError{errors.New("--all reports once: remove --watch")}
	}
	ctx, cancel := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if *all {
		return statusOfAll(ctx, stdout, asJSON, *check)
	}
	_, r, done, err := openState()
	if err != nil {
		return err
	}
	defer done()
	s, err := showStatus(ctx, r, stdout, asJSON, nil)
	if err == nil && *check && s.Verdict.Bad() {
		return errors.New(s.Verdict.Text)
	}
	if err != nil || *watch == 0 {
		return err
	}
	var screen io.Writer // to overwrite
	if out, ok := stdout.(*plain.Writer); ok {
		if f, ok := out.Unwrap().(*os.File); ok && progress.Terminal(f) {
			screen = f
		}
	}
	t := time.NewTicker(*watch)
	defer t.Stop()
	for {
		select {
		case <-t.C:
		case <-ctx.Done():
			return nil
		}
		if _, err := showStatus(ctx, r, stdout, asJSON, screen); err != nil && ctx.Err() == nil {
			fmt.Fprintln(stderr, "bridge:", plain.Line(err.Error())) // brokers may come back
		}
	}
}

func showStatus(
	ctx context.Context, r *status.Reader, out io.Writer, asJSON bool, screen io.Writer,
) (*status.Status, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, setup.StateTimeout, setup.ErrSilent)
	defer cancel()
	s, err := r.Status(ctx)
	if err != nil {
		return nil, err
	}
	if asJSON {
		return s, json.NewEncoder(out).Encode(s)
	}
	if screen != nil {
		fmt.Fprint(screen, "\x1b[H\x1b[2J")
	}
	_, err = io.WriteString(out, s.Text())
	return s, err
}
