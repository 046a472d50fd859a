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
	"blobfeed/internal/plain"
	"blobfeed/internal/setup"
	"blobfeed/internal/status"
)

const seekHelp = `
Moves the place at which the bridge continues: to the first event of a segment (2026/01/31/1200), to the first event
of the feed (earliest), or to a time (2026-01-31T12:00:00Z, or the text of an "updated"), before which events are
left out. Stop the instances first. A place in the future, or after the newest segment of the feed, needs --force.
If the topic of the state was deleted, it is created again.
After a move forward, the events between are skipped. After a move back, events are delivered a second time, after a
marker with the header "seek".
`

func seekVerb(ctx context.Context, env config.Env, args []string, stdout, _ io.Writer) error {
	usage := "--to SEGMENT|TIME|UPDATED|earliest [--yes] [--force] [--output text|json]"
	fs := flags(env, "seek", usage, stdout, func(w io.Writer) { fmt.Fprint(w, seekHelp) })
	to := fs.String("to", "", "where to continue")
	f, err := parseChange(fs, args)
	if err != nil {
		return err
	}
	if *to == "" {
		return &usageError{errors.New("seek needs --to: a segment such as 2026/01/31/1200, a time, " +
			"the text of an \"updated\", or earliest")}
	}
	target, err := parsePlace("to", *to)
	if err != nil {
		return err
	}
	return f.run(ctx, env, stdout, func(c *config.Config) (change.Kind, error) {
		if c.SourceURL == "" { // the state can be moved from where the feed is unknown
			return change.Seek(target, nil), nil
		}
		from, err := setup.OpenSource(c, setup.Observe{})
		if err != nil {
			return change.Kind{}, &settingsError{err}
		}
		return change.Seek(target, from), nil
	})
}

const resetHelp = `
Removes all progress: the next start is a first start, at BRIDGE_START, with the settings it has then. Records stay in
their topics, so events that are delivered again are there twice. Stop the instances first.
`

func resetVerb(ctx context.Context, env config.Env, args []string, stdout, _ io.Writer) error {
	usage := "[--yes] [--force] [--output text|json]"
	fs := flags(env, "reset", usage, stdout, func(w io.Writer) { fmt.Fprint(w, resetHelp) })
	f, err := parseChange(fs, args)
	if err != nil {
		return err
	}
	return f.run(ctx, env, stdout, func(*config.Config) (change.Kind, error) { return change.Reset(), nil })
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
			"feed does not have yet, or for a name that has never run")
	f.asJSON, err = parseOutput(fs, args, "one document")
	return f, err
}

// run shows the change, and applies it if the flags say so.
func (f changeFlags) run(
	ctx context.Context, env config.Env, stdout io.Writer, kindOf func(*config.Config) (change.Kind, error),
) error {
	c, r, done, err := openState(env)
	if err != nil {
		return err
	}
	defer done()
	kind, err := kindOf(c)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, changeTimeout, status.ErrSilent)
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
	last := "nothing changed; add " + plan.Flags()
	if plan.Done {
		last = "done"
	}
	_, err = fmt.Fprintln(stdout, last)
	return err
}

const replayHelp = `
Delivers the events between two times into another topic, as run does, with a state of its own. The live bridge is not
touched and may run meanwhile. After an interruption, repeat the same command: the replay continues. It ends when the
feed is complete up to --to. All other settings are those of run.
--cleanup deletes the state of a replay afterwards; its records stay.
`

func replayVerb(ctx context.Context, env config.Env, args []string, stdout, stderr io.Writer) error {
	usage := "--from TIME --to TIME --topic TOPIC [--name NAME] | --cleanup --topic TOPIC [--name NAME]"
	fs := flags(env, "replay", usage, stdout, func(w io.Writer) { fmt.Fprint(w, replayHelp) })
	var r change.Replay
	fs.StringVar(&r.From, "from", "", "first time (or text of an \"updated\"), or earliest")
	fs.StringVar(&r.To, "to", "", "last time (or text of an \"updated\")")
	fs.StringVar(&r.Topic, "topic", "", "topic of the records; not a topic of the live bridge")
	fs.StringVar(&r.Name, "name", "", "name of the replay's state (default: <BRIDGE_NAME>.replay.<topic>)")
	cleanup := fs.Bool("cleanup", false, "delete the state of this replay")
	if err := parse(fs, args); err != nil {
		return err
	}
	if r.Topic == "" || *cleanup != (r.From == "" && r.To == "") || !*cleanup && (r.From == "" || r.To == "") {
		return &usageError{errors.New("replay needs --from, --to and --topic, or --cleanup and --topic")}
	}
	if *cleanup {
		return cleanUp(ctx, env, &r, stdout)
	}
	if err := r.Check(); err != nil {
		return &usageError{err}
	}
	var err error
	if r.Live, err = load(env.Load(true)); err != nil {
		return err
	}
	c, keys, err := r.Prepare(ctx)
	if err != nil {
		return typed(err)
	}
	fmt.Fprint(stdout, r.Waits(ctx))
	p, err := work(ctx, env, c, shape{replay: true}, keys, stderr)
	if errors.As(err, new(*plain.SettingsError)) { // its remedies are those of run
		return &settingsError{fmt.Errorf("%w. This is about the replay's own state: leave the bridge %s as it is. To "+
			"replay other times, use another --topic, and for this one bridge replay --cleanup", err, r.Live.Name)}
	}
	if err != nil {
		return err
	}
	text, err := r.Report(ctx, c, p.Records())
	if err == nil {
		_, err = fmt.Fprint(stdout, text)
	}
	return err
}

func cleanUp(ctx context.Context, env config.Env, r *change.Replay, stdout io.Writer) (err error) {
	if r.Live, err = load(env.LoadKafka()); err != nil {
		return err
	}
	topic, err := r.CleanUp(ctx)
	if err != nil {
		return typed(err)
	}
	_, err = fmt.Fprintf(stdout, "topic %s is deleted\n", topic)
	return err
}
