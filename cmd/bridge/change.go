package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"time"

	"blobfeed/internal/change"
	"blobfeed/internal/config"
	"blobfeed/internal/history"
	"blobfeed/internal/setup"
)

const seekHelp = `
Moves the place at which the bridge continues: to the first event of a segment (2026/01/31/1200), to the first event
of the feed (earliest), or to a time (2026-01-31T12:00:00Z, or the text of an "updated"), before which events are
left out. Stop the instances first. A place in the future, or after the newest segment of the feed, needs --force.
After a move forward, the events between are skipped. After a move back, events are delivered a second time, after a
marker with the header "seek".
`

func seekVerb(ctx context.Context, args []string, stdout, _ io.Writer) error {
	usage := "--to SEGMENT|TIME|UPDATED|earliest [--yes] [--force] [--output text|json]"
	fs := flags("seek", usage, stdout, func(w io.Writer) { fmt.Fprint(w, seekHelp) })
	to := fs.String("to", "", "where to continue")
	f, err := parseChange(fs, args)
	if err != nil {
		return err
	}
	if *to == "" {
		return &usageError{errors.New("seek needs --to: a segment such as 2026/01/31/1200, a time, " +
			"the text of an \"updated\", or earliest")}
	}
	target, err := history.ParseTarget(*to)
	if err != nil {
		return &usageError{fmt.Errorf("--to: %w", err)}
	}
	return f.run(ctx, stdout, func(c *config.Config) (change.Kind, error) {
		if c.SourceURL == "" { // the state can be moved from where the feed is unknown
			return change.Seek(target, nil), nil
		}
		from, err := setup.OpenSource(c, setup.Observe{})
		if err != nil {
			return change.Kind{}, &settingsError{err}
		}
		return change.Seek(target, from.Feed), nil
	})
}

const resetHelp = `
Removes all progress: the next start is a first start, at BRIDGE_START, with the settings it has then. Records stay in
their topics, so events that are delivered again are there twice. Stop the instances first.
`

func resetVerb(ctx context.Context, args []string, stdout, _ io.Writer) error {
	usage := "[--yes] [--force] [--output text|json]"
	fs := flags("reset", usage, stdout, func(w io.Writer) { fmt.Fprint(w, resetHelp) })
	f, err := parseChange(fs, args)
	if err != nil {
		return err
	}
	return f.run(ctx, stdout, func(*config.Config) (change.Kind, error) { return change.Reset(), nil })
}

// changeTimeout bounds taking lease 0 and writing the change.
const changeTimeout = 2 * time.Minute

// changeFlags are those of seek and reset.
type changeFlags struct {
	yes, force, asJSON bool
}

func parseChange(fs *flag.FlagSet, args []string) (f changeFlags, err error) {
	fs.BoolVar(&f.yes, "yes", false, "apply the change; without it, the change is only shown")
	fs.BoolVar(&f.force, "force", false,
		"apply the change although instances run, which continue from the new state; seek: or to a place that the "+
			"feed does not have yet")
	f.asJSON, err = parseOutput(fs, args, "one document")
	return f, err
}

// run shows the change, and applies it if the flags say so.
func (f changeFlags) run(
	ctx context.Context, stdout io.Writer, kindOf func(*config.Config) (change.Kind, error),
) error {
	c, r, done, err := openState()
	if err != nil {
		return err
	}
	defer done()
	kind, err := kindOf(c)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, changeTimeout, setup.ErrSilent)
	defer cancel()
	plan, err := change.Prepare(ctx, r, c, kind)
	if err != nil {
		return err
	}
	if !f.asJSON {
		plan.Text(stdout)
	}
	if f.yes {
		if err := plan.Apply(ctx, f.force); err != nil {
			return err
		}
	}
	if f.asJSON {
		return json.NewEncoder(stdout).Encode(plan)
	}
	last := "nothing changed; add --yes"
	if plan.Done {
		last = "done"
	}
	_, err = fmt.Fprintln(stdout, last)
	return err
}
