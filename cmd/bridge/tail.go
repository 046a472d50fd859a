package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"blobfeed/envelope"
	"blobfeed/internal/config"
	"blobfeed/internal/plain"
	"blobfeed/internal/progress"
	"blobfeed/internal/setup"
	"blobfeed/internal/tail"
)

const tailHelp = `
Prints the records that run would write, as the feed grows, until Ctrl-C. Needs no Kafka: BRIDGE_SOURCE_URL is enough.
The settings for filters and records apply, but BRIDGE_START and BRIDGE_END_TIME do not. Markers are not printed. Avro
is shown as JSON. With text, a line has key and value, separated by a tab, and a tombstone is null.
`

func tailVerb(ctx context.Context, env config.Env, args []string, stdout, stderr io.Writer) error {
	usage := "[--from latest|earliest|TIME|SEGMENT] [--once] [--limit N] [--headers] [--output text|json]"
	fs := flags(env, "tail", usage, stdout, func(w io.Writer) { fmt.Fprint(w, tailHelp) })
	from := fs.String("from", "",
		"first event: latest (from now on; the default), earliest (the default with --once), a time, "+
			"a segment such as 2026/01/31/1200, or an \"updated\"")
	once := fs.Bool("once", false, "print what the feed holds now, then exit")
	limit := fs.Int("limit", 0, "exit after this number of records; 0: no limit")
	headers := fs.Bool("headers", false, "print the headers, too")
	output := fs.String("output", "text", "text, or json: one document per record")
	if err := parse(fs, args); err != nil {
		return err
	}
	asJSON, err := wantsJSON(*output)
	if err != nil {
		return err
	}
	if *limit < 0 {
		return &usageError{fmt.Errorf("--limit %d: want a number of records", *limit)}
	}
	if *from == "" && *once { // from now on, there would be nothing
		*from = "earliest"
	}
	if *from == "" || *from == "latest" {
		*from = time.Now().UTC().Format(time.RFC3339Nano)
	}
	start, err := parsePlace("from", *from, "latest")
	if err != nil {
		return err
	}
	if start.Time().After(time.Now()) {
		return &usageError{
			fmt.Errorf("--from: %s is in the future: until then, there would be nothing to print", *from)}
	}
	c, err := load(env.Load(false))
	if err != nil {
		return err
	}
	c = tail.Legible(c)
	record, _ := setup.Record(c) // load has reported its problems
	p := &tail.Printer{JSON: asJSON, Headers: *headers, TextKey: record.KeyFormat == envelope.KeyString,
		Letters: plain.DeadLetterTopic(c.Name)}
	p.To(stdout)
	ctx, cancel := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer cancel()
	signal.Ignore(syscall.SIGPIPE) // else a closed pipe would kill the process, not fail the write
	log, _ := progress.New(c, stderr)
	err = tail.Run(ctx, c, tail.Options{
		From: start, Once: *once, Limit: *limit, Print: p.Print, Flush: p.Flush, Log: log,
	})
	if errors.Is(err, syscall.EPIPE) { // head has seen enough
		return nil
	}
	return err
}
