package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"blobfeed/internal/plain"
	"blobfeed/source"
	"blobfeed/source/ocf"
)

const dumpHelp = `
Without arguments: the segments of the feed that BRIDGE_SOURCE_URL names.
A chunk is a file, or a name in that feed (log/00/2026/01/31/1200/00000.avro): its events are printed.
--at begins at an offset, or prints the one event whose position (header "position" of its record) is given.
--state prints what the bridge keeps in its topic: the frontier, and per lease its cursor and its owner.
`

func dumpVerb(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	fs := flags("dump", "[--output text|json] [--segment YYYY/MM/DD/HHMM | --state | --at OFFSET|POSITION] [CHUNK.avro]", stderr, func(w io.Writer) { fmt.Fprint(w, dumpHelp) })
	output := fs.String("output", "text", "text, or json: a document a line")
	segment := fs.String("segment", "", "print the events of this segment")
	at := fs.String("at", "", "begin at the block at this offset of the chunk; or print the event at this position of the feed")
	state := fs.Bool("state", false, "print the bridge's progress")
	var chunk string
	if err := parse(fs, args, &chunk); err != nil {
		return err
	}
	asJSON, err := wantsJSON(*output)
	if err != nil {
		return err
	}
	if place := chunk != "" || *at != ""; *state && (place || *segment != "") || place && *segment != "" {
		return &usageError{errors.New("--segment, --state, and a chunk or --at exclude each other")}
	}
	d := dumper{out: stdout, json: asJSON}
	if position, err := source.ParsePosition(*at); err == nil && chunk == "" {
		return d.inFeed(func(feed *source.Feed) error { return d.event(ctx, feed, position) })
	}
	offset := int64(0)
	if *at != "" {
		if offset, err = strconv.ParseInt(*at, 10, 64); err != nil || chunk == "" {
			return &usageError{fmt.Errorf("--at %s: want an offset and a chunk, or the position of an event", *at)}
		}
	}
	switch {
	case strings.HasPrefix(chunk, "log/"):
		return d.inFeed(func(feed *source.Feed) error { return d.feedChunk(ctx, feed, chunk, offset) })
	case chunk != "":
		return d.chunk(chunk, offset)
	case *state:
		return d.state(ctx)
	case *segment == "":
		return d.inFeed(func(feed *source.Feed) error { return d.segments(ctx, feed) })
	}
	seg, err := source.ParseSegment(*segment)
	if err != nil {
		return &usageError{err}
	}
	return d.inFeed(func(feed *source.Feed) error { return d.segment(ctx, feed, seg) })
}

// inFeed calls f with the feed that the settings name.
func (d dumper) inFeed(f func(*source.Feed) error) error {
	c, err := loadConfig(false)
	if err != nil {
		return &usageError{fmt.Errorf("settings:\n%w", err)}
	}
	feed, _, _, err := openFeed(c)
	if err != nil {
		return &usageError{err}
	}
	return f(feed)
}

type dumper struct {
	out  io.Writer
	json bool
}

// print writes a document as JSON, or as text.
func (d dumper) print(doc any, format string, args ...any) error {
	if !d.json {
		for i, a := range args {
			if text, ok := a.(string); ok {
				args[i] = plain.Line(text) // a line break in a name must not look like another line
			}
		}
		_, err := fmt.Fprintf(d.out, format+"\n", args...)
		return err
	}
	return json.NewEncoder(d.out).Encode(doc)
}

func (d dumper) segments(ctx context.Context, feed *source.Feed) error {
	for seg, err := range feed.Segments(ctx, source.Segment{}) {
		if err != nil {
			return err
		}
		m, err := feed.Manifest(ctx, seg)
		if err != nil {
			return err
		}
		status := "open"
		if m.Finalized {
			status = "finalized"
		}
		if err := d.print(map[string]any{"segment": seg, "begin": m.Begin, "interval_seconds": m.Interval.Seconds(), "finalized": m.Finalized, "shards": m.Shards},
			"%s  %-9s  %s  shards %s", seg, status, m.Interval, strings.Trim(fmt.Sprint(m.Shards), "[]")); err != nil {
			return err
		}
	}
	return nil
}

func (d dumper) segment(ctx context.Context, feed *source.Feed, seg source.Segment) error {
	m, err := feed.Manifest(ctx, seg)
	if err != nil {
		return err
	}
	for _, shard := range m.Shards {
		if err := d.shard(ctx, feed, m, shard, source.ShardPosition{}, func(source.Batch) bool { return true }); err != nil {
			return err
		}
	}
	return nil
}

// shard prints the events of a shard from a position on, for as long as more says so.
func (d dumper) shard(ctx context.Context, feed *source.Feed, m source.Manifest, shard int, from source.ShardPosition, more func(source.Batch) bool) error {
	r := feed.Shard(m, shard, from)
	if err := r.Poll(ctx, m.Finalized); err != nil {
		return err
	}
	for {
		var b source.Batch
		err := r.Next(ctx, &b)
		if errors.Is(err, io.EOF) || err == nil && !more(b) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := d.events(b.Blob, b.Offset, b.Events); err != nil {
			return err
		}
	}
}

// feedChunk prints the events of one chunk of the feed.
func (d dumper) feedChunk(ctx context.Context, feed *source.Feed, name string, at int64) error {
	f := strings.Split(strings.TrimSuffix(name, ".avro"), "/") // log SS YYYY MM DD HHMM NNNNN
	wrong := &usageError{fmt.Errorf("chunk %s: want log/SS/YYYY/MM/DD/HHMM/NNNNN.avro", name)}
	if len(f) != 7 {
		return wrong
	}
	seg, err1 := source.ParseSegment(strings.Join(f[2:6], "/"))
	shard, err2 := strconv.Atoi(f[1])
	chunk, err3 := strconv.Atoi(f[6])
	if errors.Join(err1, err2, err3) != nil {
		return wrong
	}
	m, err := feed.Manifest(ctx, seg)
	if err != nil {
		return err
	}
	return d.shard(ctx, feed, m, shard, source.ShardPosition{Chunk: chunk, Offset: at}, func(b source.Batch) bool { return b.Chunk == chunk })
}

// event prints the event at a position.
func (d dumper) event(ctx context.Context, feed *source.Feed, p source.Position) error {
	m, err := feed.Manifest(ctx, p.Segment)
	if err != nil {
		return err
	}
	r := feed.Shard(m, p.Shard, source.ShardPosition{Chunk: p.Chunk, Offset: p.Offset})
	if err := r.Poll(ctx, m.Finalized); err != nil {
		return err
	}
	var b source.Batch
	if err := r.Next(ctx, &b); err != nil {
		return fmt.Errorf("reading position %s: %w", p, err)
	}
	if b.Offset != p.Offset || p.Index >= len(b.Events) {
		return fmt.Errorf("reading position %s: no such event; the block at offset %d has %d", p, b.Offset, len(b.Events))
	}
	return d.line(b.Blob, b.Offset, p.Index, b.Events[p.Index])
}

func (d dumper) chunk(file string, at int64) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	h, err := ocf.ParseHeader(data, ocf.Limits{})
	if err != nil {
		return fmt.Errorf("reading %s: %w", file, err)
	}
	var evs []ocf.Event
	for off := max(at, h.Size); off < int64(len(data)); {
		b, err := h.ReadBlock(data[off:], off)
		if errors.Is(err, ocf.ErrShort) {
			return fmt.Errorf("reading %s: the block at offset %d is cut off at %d", file, off, len(data))
		}
		if err != nil {
			return fmt.Errorf("reading %s: %w", file, err)
		}
		if evs, err = h.Events(b, evs); err != nil {
			return fmt.Errorf("reading %s: %w", file, err)
		}
		if err := d.events(file, b.Offset, evs); err != nil {
			return err
		}
		off = b.End
	}
	return nil
}

func (d dumper) events(blob string, offset int64, evs []ocf.Event) error {
	for i, e := range evs {
		if err := d.line(blob, offset, i, e); err != nil {
			return err
		}
	}
	return nil
}

func (d dumper) line(blob string, offset int64, index int, e ocf.Event) error {
	return d.print(map[string]any{"chunk": blob, "offset": offset, "index": index, "event": e},
		"%8d/%-3d  %s  %-28s  %s", offset, index, e.EventTime, e.EventType, strings.TrimPrefix(e.Subject, "/blobServices/default/containers/"))
}
