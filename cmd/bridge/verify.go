package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"blobfeed/bridge"
	"blobfeed/config"
	"blobfeed/envelope"
	"blobfeed/kafka"
	"blobfeed/verify"
)

// brokenError says that a topic is not what was promised.
type brokenError struct{ checks []string }

func (e *brokenError) Error() string { return "verification failed: " + strings.Join(e.checks, ", ") }

func verifyVerb(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	fs := flags("verify", "[--topic T] [--feed] [--until-resolved TIME] [--bounded] [--grown-from N] [--output text|json]", stderr, func(w io.Writer) {
		fmt.Fprint(w, "\nReads the topic from its beginning to the end it has now, read_committed, and tells which of the bridge's promises hold.\n"+
			"The settings are those that the topic was written with. Exit codes: 0 all that apply hold, 4 one is broken, 1 one could not be\n"+
			"checked (also: the topic is empty), 2 usage or settings.\n")
	})
	var v verification
	fs.StringVar(&v.topic, "topic", "", "the topic (default: BRIDGE_TOPIC)")
	fs.BoolVar(&v.feed, "feed", false, "read the feed, too: nothing is lost, changed or made up")
	until := fs.String("until-resolved", "", "stop at the first marker at or above this time (or text of an \"updated\"), which every partition must have")
	fs.BoolVar(&v.bounded, "bounded", false, "run only what needs no memory for events or keys: for very long topics")
	fs.IntVar(&v.grownFrom, "grown-from", 0, "how many partitions the topic had before some were added")
	output := fs.String("output", "text", "text, or json: one document")
	if err := parse(fs, args); err != nil {
		return err
	}
	asJSON, err := wantsJSON(*output)
	if err != nil {
		return err
	}
	if v.bounded && v.feed {
		return &usageError{errors.New("--feed keeps some 40 bytes an event: it can't be --bounded")}
	}
	c, err := config.Load(true)
	if err != nil {
		return &usageError{fmt.Errorf("settings:\n%w", err)}
	}
	c.RegistryAutoRegister = false // a reader writes nothing
	if v.Options, err = options(c, observe{}); err != nil {
		return &usageError{err}
	}
	v.config = c
	if v.topic == "" {
		var one bool
		if v.topic, one = v.Topics.Constant(); !one {
			return &usageError{fmt.Errorf("%s_TOPIC=%s is many topics: name one with --topic", config.Prefix, c.Topic)}
		}
	}
	if *until != "" {
		if v.until, err = bridge.ParseTime(*until); err != nil {
			return &usageError{fmt.Errorf("--until-resolved: %w", err)}
		}
		if v.Markers != envelope.MarkersInline {
			return &usageError{fmt.Errorf("--until-resolved: the topic has no markers (%s_RESOLVED_TO=%s)", config.Prefix, v.Markers)}
		}
	}
	ctx, cancel := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer cancel()
	r, err := v.run(ctx)
	if err != nil {
		return err
	}
	if err := r.write(stdout, asJSON); err != nil {
		return err
	}
	return r.err()
}

// verification is one run of the verb.
type verification struct {
	bridge.Options
	config        *config.Config
	encoder       *envelope.Encoder // of the topic
	topic         string
	feed, bounded bool
	grownFrom     int                // 0: it has the partitions it began with
	until         envelope.Timestamp // zero: the end
}

// run reads everything in an order in which nothing that goes on meanwhile looks like a fault: the state before the ends of
// the topic, so that what it covers is in the topic; and those before the feed, so that what is in the topic is in the feed.
func (v *verification) run(ctx context.Context) (*report, error) {
	state, err := v.state(ctx)
	if err != nil {
		return nil, err
	}
	t, err := openTopic(ctx, v.Client, v.topic)
	if err != nil {
		return nil, err
	}
	defer t.close()
	if v.grownFrom < 0 || v.grownFrom > len(t.to) {
		return nil, &usageError{fmt.Errorf("--grown-from %d: %s has %d partitions now", v.grownFrom, v.topic, len(t.to))}
	}
	r := &report{Topic: v.topic, Partitions: len(t.to)}
	if t.empty() {
		r.Problem = fmt.Sprintf("topic %s is empty: nothing was checked", v.topic)
		return r, nil
	}
	if v.encoder, err = v.Encoder(ctx, v.topic); err != nil {
		return nil, v.unread(err)
	}
	checks := v.checks(t)
	var feed *comparison
	if v.feed {
		if feed, err = v.compare(ctx, t, state); err != nil {
			return nil, err
		}
		checks.replay(feed)
	}
	group := verify.All(checks.validators()...)
	reached := map[int32]bool{}
	note := func(rec verify.Record) (more bool) {
		group.Note(rec)
		if rec.Key == nil && v.until != (envelope.Timestamp{}) {
			if at, ok := markerTime(&rec); ok && at.Compare(v.until) >= 0 {
				reached[rec.Partition] = true
				return false
			}
		}
		return true
	}
	if err := t.scan(ctx, note); err != nil {
		return nil, err
	}
	if v.until == (envelope.Timestamp{}) && checks.resolved != nil {
		if err := t.catchUp(ctx, note); err != nil {
			return nil, err
		}
	}
	for p := range int32(len(t.to)) {
		if v.until != (envelope.Timestamp{}) && !reached[p] {
			return nil, fmt.Errorf("partition %d of %s has no marker at or above %s yet: nothing can be said up to there", p, v.topic, v.until)
		}
	}
	r.fill(group.Summary(), checks, t, feed, state)
	return r, nil
}

// unread says what a missing schema means to a reader.
func (v *verification) unread(err error) error {
	var refused *kafka.SchemaError
	if !errors.As(err, &refused) || !refused.Missing {
		return err
	}
	return &usageError{fmt.Errorf("subject %s in the registry does not have the schema of records as the settings make them (%s), and verify registers none: "+
		"use the settings, the registry and the version of bridge that topic %s was written with", refused.Subject, refused.Reason, v.topic)}
}
