package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"blobfeed/internal/config"
	"blobfeed/internal/dump"
	"blobfeed/internal/plain"
	"blobfeed/internal/setup"
	"blobfeed/internal/status"
	"blobfeed/offsets"
	"blobfeed/source"
)

const dumpHelp = `
Without arguments, prints the segments of the feed that BRIDGE_SOURCE_URL names.
With a chunk, prints its events. A chunk is a local file, or a name in that feed
(log/00/2026/01/31/1200/00000.avro).
With --at, starts at an offset of the chunk, or prints the event at a position (header "position" of its record).
With --state, prints what the bridge keeps in its state topic: the frontier, and the cursor and owner of each lease.
`

func dumpVerb(ctx context.Context, env config.Env, args []string, stdout, _ io.Writer) error {
	usage := "[--output text|json] [--segment YYYY/MM/DD/HHMM | --state | --at OFFSET|POSITION] [CHUNK.avro]"
	fs := flags(env, "dump", usage, stdout, func(w io.Writer) { fmt.Fprint(w, dumpHelp) })
	segment := fs.String("segment", "", "print the events of this segment")
	at := fs.String("at", "", "start at the block at this offset of the chunk, or print the event at this position")
	state := fs.Bool("state", false, "print the bridge's state")
	var chunk string
	asJSON, err := parseOutput(fs, args, "one document per line", &chunk)
	if err != nil {
		return err
	}
	if place := chunk != "" || *at != ""; *state && (place || *segment != "") || place && *segment != "" {
		return &usageError{errors.New("--segment, --state, and a chunk or --at exclude each other")}
	}
	if _, err := source.ParseSegment(chunk); err == nil && chunk != "" {
		return &usageError{fmt.Errorf("for the events of a segment, use --segment %s", chunk)}
	}
	if _, err := os.Stat(chunk); err != nil && chunk != "" && !strings.HasSuffix(chunk, ".avro") {
		return &usageError{
			fmt.Errorf("%s is not a chunk (NNNNN.avro); for the events of a blob, use bridge find", chunk)}
	}
	d := dump.Dumper{Out: stdout, JSON: asJSON}
	place, err := source.ParsePosition(*at)
	if err == nil && chunk == "" {
		return inFeed(env, func(feed *source.Feed) error { return d.Event(ctx, feed, place) })
	}
	offset := int64(0)
	if *at != "" {
		if offset, err = strconv.ParseInt(*at, 10, 64); err != nil || chunk == "" {
			return &usageError{fmt.Errorf("--at %s: want an offset and a chunk, or the position of an event", *at)}
		}
	}
	switch {
	case strings.HasPrefix(chunk, "log/"):
		if place, err = dump.ParseChunk(chunk); err != nil {
			return &usageError{err}
		}
		place.Offset = offset
		return inFeed(env, func(feed *source.Feed) error { return d.Chunk(ctx, feed, place) })
	case chunk != "":
		return d.File(chunk, offset)
	case *state:
		c, err := load(env.LoadKafka())
		if err != nil {
			return err
		}
		return setup.InState(ctx, c, func(_ context.Context, _ *status.Reader, s *offsets.State) error {
			return d.State(s)
		})
	case *segment == "":
		return inFeed(env, func(feed *source.Feed) error { return d.Segments(ctx, feed) })
	}
	seg, err := source.ParseSegment(*segment)
	if err != nil {
		return &usageError{fmt.Errorf("--segment: %w, as in 2026/01/31/1200; bridge dump lists those of the feed", err)}
	}
	return inFeed(env, func(feed *source.Feed) error { return d.Segment(ctx, feed, seg) })
}

// inFeed calls f with the feed that the settings name.
func inFeed(env config.Env, f func(*source.Feed) error) error {
	c, err := load(env.Load(false))
	if err != nil {
		return err
	}
	from, err := setup.OpenSource(c, setup.Observe{})
	if err != nil {
		return &settingsError{err}
	}
	err = f(from.Feed)
	if damage, is := errors.AsType[*source.DamageError](err); is && damage.Kind == source.BadBytes {
		return inTheFeed(*damage, strings.HasPrefix(c.SourceURL, "file://"))
	}
	return err
}

// inTheFeed says of damage, which has just been read, that it is not only in what run has received.
func inTheFeed(d source.DamageError, copied bool) error {
	d.Hint = ""
	do := "the feed itself has this damage, as read just now: "
	if copied {
		do += "copy the chunk again; if the account has the damage, too, "
	}
	return plain.WithRemedy(&d, do+"set BRIDGE_ON_ERROR=dead_letter for run to put these bytes into the dead-letter "+
		"topic and continue behind them; runbook: BridgeDamage in docs/operations.md")
}
