package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"unicode/utf8"

	"blobfeed/internal/config"
	"blobfeed/internal/find"
	"blobfeed/internal/history"
	"blobfeed/internal/plain"
	"blobfeed/internal/setup"
	"blobfeed/internal/status"
	"blobfeed/offsets"
)

const findHelp = `
Answers "where is my change?": prints each event of a blob (container/path) in the feed, or the one with an id, its
position, and what became of it: its record in Kafka and the marker behind it, the setting that leaves it out, its dead
letter, or that it is not delivered yet. Reads the feed and Kafka, and writes nothing.
Exit code 1 if the feed has no such event, or an event is missing from the topic.
`

// blobPath returns the path of a blob that is named by its URL, by the key of its records, or with a slash before it.
func blobPath(text string) string {
	var key []string
	if json.Unmarshal([]byte(text), &key) == nil && len(key) == 1 {
		text = key[0]
	}
	if u, err := url.Parse(text); err == nil && u.Scheme == "https" {
		text = u.Path
	}
	return strings.TrimPrefix(text, "/")
}

func findVerb(ctx context.Context, env config.Env, args []string, stdout, stderr io.Writer) error {
	usage := "CONTAINER/PATH | --id EVENT_ID [--from TIME|SEGMENT] [--to TIME] [--value] [--output text|json]"
	fs := flags(env, "find", usage, stdout, func(w io.Writer) { fmt.Fprint(w, findHelp) })
	var q find.Query
	fs.StringVar(&q.ID, "id", "", "find the event with this id (header ce_id)")
	from := fs.String("from", "earliest", "first event: earliest, a time, or a segment such as 2026/01/31/1200")
	to := fs.String("to", "", "last event: a time; the end of the feed if it is not set")
	value := fs.Bool("value", false, "print the values of records, too")
	asJSON, err := parseOutput(fs, args, "one document per event", &q.Path)
	if err != nil {
		return err
	}
	if (q.Path == "") == (q.ID == "") {
		return &usageError{errors.New("find needs either a path, such as photos/2026/cat.jpg, or --id")}
	}
	if q.Path = blobPath(q.Path); q.ID == "" && !strings.Contains(q.Path, "/") {
		return &usageError{
			fmt.Errorf("find %s: want a container and a path in it, such as photos/2026/cat.jpg", q.Path)}
	}
	if q.From, err = parsePlace("from", *from); err != nil {
		return err
	}
	if *to != "" {
		if q.To, err = history.ParseEnd(*to); err != nil {
			return &usageError{fmt.Errorf("--to: %w", err)}
		}
		if q.From.Time().UnixNano() > q.To.Wall && !q.From.Time().IsZero() {
			return &usageError{fmt.Errorf("--from %s is later than --to %s", *from, *to)}
		}
	}
	c, err := load(env.Load(true))
	if err != nil {
		return err
	}
	o, err := setup.Options(c, setup.Observe{})
	if err != nil {
		return &settingsError{err}
	}
	ctx, cancel := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer cancel()
	r, done, err := setup.State(c)
	if err != nil {
		return err
	}
	defer done()
	state, err := r.State(ctx)
	if err != nil && !errors.As(err, new(*status.NeverRanError)) {
		return err
	}
	if state != nil && state.Frontier != nil {
		if err := own(state.Frontier, o.Feed.ID, c); err != nil {
			return err
		}
	}
	never := err // there is no state: each event waits for the first start
	finder := find.Finder{Bridge: &o, State: state, Bare: c.Headers == "none",
		Letters: plain.DeadLetterTopic(c.Name), Values: *value}
	n, missing := 0, 0
	err = finder.Find(ctx, q, func(f *find.Found) error {
		n++
		switch {
		case f.Fate == find.Missing:
			missing++
		case never != nil && f.Fate == find.Waiting:
			f.Why = never.Error()
		}
		return showFound(stdout, f, asJSON, *value)
	})
	damage := finder.Damage
	if err == nil && damage != nil && n > 0 {
		fmt.Fprintf(stderr, "note: the feed is damaged at %s, offset %d: events in that place are not shown; with "+
			"BRIDGE_ON_ERROR=dead_letter, topic %s has its bytes\n", damage.Blob, damage.Offset, finder.Letters)
	}
	switch {
	case err != nil:
		return err
	case n == 0 && damage != nil:
		return damage
	case missing > 0:
		return fmt.Errorf("missing from the topic: %s of %d", plain.Count(missing, "event"), n)
	case n == 0:
		other := "the name differs in upper and lower case"
		if q.ID != "" {
			other = "this is not the ce_id of a record"
		}
		return fmt.Errorf("the feed has no event of %s there: Azure may not have published it yet, retention may have "+
			"deleted it, or %s", cmp.Or(q.Path, q.ID), other)
	}
	return nil
}

// own rejects settings with which the bridge has written nothing: records would look as if they were missing.
func own(f *offsets.Frontier, feed string, c *config.Config) error {
	if f.Feed != feed {
		return plain.SettingsErrorf("BRIDGE_SOURCE_URL names feed %s, but %s has progress on feed %s", feed, c.Name,
			f.Feed)
	}
	if have := f.Settings[offsets.FrozenTopic]; have != "" && have != c.Topic {
		return plain.SettingsErrorf("BRIDGE_TOPIC=%s, but records of %s were written with %s", c.Topic, c.Name, have)
	}
	return nil
}

func showFound(out io.Writer, f *find.Found, asJSON, value bool) error {
	text := ""
	if value {
		text = string(f.Value)
		if !utf8.Valid(f.Value) {
			text = plain.Count(len(f.Value), "byte") + " of Avro"
		}
	}
	if asJSON {
		e := json.NewEncoder(out)
		e.SetEscapeHTML(false)
		return e.Encode(struct {
			*find.Found
			Value string `json:"value,omitempty"`
		}{f, text})
	}
	fmt.Fprintf(out, "%s  %s  %s\n  position  %s\n  id        %s\n", f.Time.Format("2006-01-02T15:04:05.000Z"),
		plain.Line(f.Type), plain.Line(f.Path), f.Position, plain.Line(f.ID))
	switch f.Fate {
	case find.Delivered, find.DeadLetter:
		what := "record"
		if f.Fate == find.DeadLetter {
			what = "dead letter"
		}
		fmt.Fprintf(out, "  %-9s topic %s, partition %d, offset %d\n", what, f.Record.Topic, f.Record.Partition,
			f.Record.Offset)
		for _, again := range f.Again {
			fmt.Fprintf(out, "  again     partition %d, offset %d\n", again.Partition, again.Offset)
		}
		if m := f.CoveredBy; m != nil {
			fmt.Fprintf(out, "  marker    %s at offset %d\n", m.Resolved, m.Offset)
		}
	default:
		fate := map[string]string{find.LeftOut: "left out", find.Waiting: "not delivered yet", find.Missing: "MISSING",
			find.Skipped: "skipped", find.Unknown: "unknown"}[f.Fate]
		fmt.Fprintf(out, "  %s: %s\n", fate, plain.Line(f.Why))
	}
	if text != "" {
		fmt.Fprintf(out, "  value     %s\n", text)
	}
	return nil
}
