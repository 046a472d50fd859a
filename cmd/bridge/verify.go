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

	"blobfeed/envelope"
	"blobfeed/internal/config"
	"blobfeed/internal/history"
	"blobfeed/internal/plain"
	"blobfeed/internal/progress"
	"blobfeed/verify/judge"
)

const verifyHelp = `
Reads the topic, or all topics of a template, read_committed from the first record to the current end, and reports which
of the bridge's promises hold. Use the settings that the topic was written with. Without --feed and --account,
BRIDGE_SOURCE_URL is not needed. The topic of a replay is judged by what the replay recorded.
--follow runs beside the bridge: it verifies as the topic grows, and serves /status, /metrics and the probes at
BRIDGE_HTTP_ADDR until a promise is broken.
Exit codes: 0 all promises that apply hold, 4 a promise is broken, 1 a promise could not be checked (also: the topic is
empty), 2 usage or settings.
`

func verifyVerb(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	usage := "[--topic T] [--feed [--follow]] [--account [--wait 5m]] [--until-resolved TIME] [--bounded] " +
		"[--output text|json]"
	fs := flags("verify", usage, stdout, func(w io.Writer) { fmt.Fprint(w, verifyHelp) })
	var o judge.Options
	fs.StringVar(&o.Topic, "topic", "",
		"topic to check (default: BRIDGE_TOPIC; of a template, each topic that the bridge has written to)")
	fs.BoolVar(&o.ReadFeed, "feed", false, "compare the topic with the feed: nothing is lost, changed or made up")
	following := fs.Bool("follow", false,
		"with --feed: continue as the topic grows, segment by segment, and end with 4 at the first broken promise")
	fs.BoolVar(&o.ReadAccount, "account", false,
		"compare the topic with the blobs that the account has now, and print the keys that differ")
	fs.DurationVar(&o.Wait, "wait", 5*time.Minute,
		"with --account: maximum wait for the feed to explain keys that differ")
	until := fs.String("until-resolved", "",
		"stop at the first marker at or above this time (or text of an \"updated\"), which every partition must have")
	fs.BoolVar(&o.Bounded, "bounded", false,
		"run only checks whose memory does not grow with events or keys: for very long topics")
	asJSON, err := parseOutput(fs, args, "one document per topic")
	if err != nil {
		return err
	}
	if o.Bounded && o.ReadFeed {
		return &usageError{errors.New("--feed needs about 40 bytes per event: it excludes --bounded")}
	}
	if o.ReadAccount && *until != "" {
		return &usageError{errors.New("--account compares the end of the topic: it excludes --until-resolved")}
	}
	if *following && (!o.ReadFeed || o.ReadAccount || *until != "") {
		return &usageError{errors.New("--follow needs --feed, and excludes --account and --until-resolved")}
	}
	if *until != "" {
		if o.Until, err = history.ParseTime(*until); err != nil {
			return &usageError{fmt.Errorf("--until-resolved: %w", err)}
		}
	}
	c, err := judged(&o)
	if err != nil {
		return err
	}
	if _, state := plain.BridgeOfState(o.Topic); state || o.Topic == plain.DeadLetterTopic(c.Name) {
		return &usageError{fmt.Errorf("--topic %s: want a topic of records, such as %s; bridge dump --state prints a "+
			"state, and dead letters are verified with their topic", o.Topic, c.Topic)}
	}
	if *until != "" && o.Records.Markers == envelope.MarkersOff {
		return &usageError{fmt.Errorf("--until-resolved: the topic has no markers (%s_RESOLVED_TO=%s)",
			config.Prefix, o.Records.Markers)}
	}
	ctx, cancel := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if *following {
		log, _ := progress.ForMany(c, stderr) // without a live line
		return follow(ctx, c, o, log, stdout, asJSON)
	}
	stop := showSeen(ctx, &o, stderr)
	reports, err := judge.Run(ctx, o)
	stop()
	if err != nil {
		return err
	}
	for _, r := range reports {
		if err := printReport(stdout, r, asJSON); err != nil {
			return err
		}
	}
	return judge.Verdict(reports)
}

func printReport(stdout io.Writer, r *judge.Report, asJSON bool) (err error) {
	if !asJSON {
		_, err = io.WriteString(stdout, r.Text())
		return err
	}
	e := json.NewEncoder(stdout)
	e.SetEscapeHTML(false)
	return e.Encode(r)
}

// showSeen shows on a terminal how much is read, until stop is called.
func showSeen(ctx context.Context, o *judge.Options, stderr io.Writer) (stop func()) {
	f, ok := stderr.(*os.File)
	if !ok || !progress.Terminal(f) {
		return func() {}
	}
	o.Seen = new(judge.Seen)
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		t := time.NewTicker(time.Second)
		defer t.Stop()
		for {
			select {
			case <-t.C:
				fmt.Fprintf(f, "\r\x1b[Kread %s of the feed, %s of the topic",
					plain.Count(o.Seen.Events.Load(), "event"), plain.Count(o.Seen.Records.Load(), "record"))
			case <-ctx.Done():
				fmt.Fprint(f, "\r\x1b[K")
				return
			}
		}
	}()
	return func() { cancel(); <-ended }
}

// judged reads the settings into o.
func judged(o *judge.Options) (*config.Config, error) {
	read := config.LoadKafka
	if o.ReadFeed || o.ReadAccount {
		read = func() (*config.Config, error) { return config.Load(true) }
	}
	c, err := load(read())
	if err != nil {
		return nil, err
	}
	if err := o.Use(c); err != nil {
		return nil, &settingsError{err}
	}
	return c, nil
}
