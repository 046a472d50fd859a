package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"blobfeed/internal/change"
	"blobfeed/internal/config"
)

const replayHelp = `
Delivers the events between two times into another topic, as run does, with a state of its own. The live bridge is not
touched and may run meanwhile. After an interruption, repeat the same command: the replay continues. It ends when the
feed is complete up to --to. All other settings are those of run.
--cleanup deletes the state of a replay afterwards; its records stay.
`

func replayVerb(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	usage := "--from TIME --to TIME --topic TOPIC [--name NAME] | --cleanup --topic TOPIC [--name NAME]"
	fs := flags("replay", usage, stdout, func(w io.Writer) { fmt.Fprint(w, replayHelp) })
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
		return cleanUp(ctx, &r, stdout)
	}
	if err := r.Check(); err != nil {
		return &usageError{err}
	}
	var err error
	if r.Live, err = load(config.Load(true)); err != nil {
		return err
	}
	c, keys, err := r.Prepare(ctx)
	if err != nil {
		return typed(err)
	}
	p, err := work(ctx, c, false, keys, stderr)
	if err != nil {
		return err
	}
	text, err := r.Report(ctx, c, p.Records())
	if err == nil {
		_, err = fmt.Fprint(stdout, text)
	}
	return err
}

func cleanUp(ctx context.Context, r *change.Replay, stdout io.Writer) (err error) {
	if r.Live, err = load(config.LoadKafka()); err != nil {
		return err
	}
	topic, err := r.CleanUp(ctx)
	if err != nil {
		return typed(err)
	}
	_, err = fmt.Fprintf(stdout, "topic %s is deleted\n", topic)
	return err
}
