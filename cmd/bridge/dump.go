package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"blobfeed/config"
	"blobfeed/source"
	"blobfeed/source/ocf"
)

func dumpVerb(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	fs := flags("dump", "[--output text|json] [--segment YYYY/MM/DD/HHMM] [--at OFFSET] [CHUNK.avro]", stderr, func(w io.Writer) {
		fmt.Fprint(w, "\nWith a file: its events. With --segment: the events of that segment. Else the segments of the feed that BRIDGE_SOURCE_URL names.\n")
	})
	output := fs.String("output", "text", "text, or json: a document a line")
	segment := fs.String("segment", "", "print the events of this segment")
	at := fs.Int64("at", 0, "begin at the block at this offset of the chunk")
	if err := parse(fs, args); err != nil {
		return err
	}
	if *output != "text" && *output != "json" {
		return &usageError{fmt.Errorf("--output %s: want text or json", *output)}
	}
	d := dumper{out: stdout, json: *output == "json"}
	if fs.NArg() > 0 {
		return d.chunk(fs.Arg(0), *at)
	}
	c, err := config.Load(false)
	if err != nil {
		return &usageError{fmt.Errorf("settings:\n%w", err)}
	}
	feed, _, _, err := openFeed(c)
	if err != nil {
		return &usageError{err}
	}
	if *segment == "" {
		return d.segments(ctx, feed)
	}
	seg, err := source.ParseSegment(*segment)
	if err != nil {
		return &usageError{err}
	}
	return d.segment(ctx, feed, seg)
}

type dumper struct {
	out  io.Writer
	json bool
}

// print writes a document as JSON, or as text.
func (d dumper) print(doc any, format string, args ...any) error {
	if !d.json {
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
		r := feed.Shard(m, shard, source.ShardPosition{})
		if err := r.Poll(ctx, m.Finalized); err != nil {
			return err
		}
		for {
			var b source.Batch
			err := r.Next(ctx, &b)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return err
			}
			if err := d.events(b.Blob, b.Offset, b.Events); err != nil {
				return err
			}
		}
	}
	return nil
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
		if err := d.print(map[string]any{"chunk": blob, "offset": offset, "index": i, "event": e},
			"%8d/%-3d  %s  %-28s  %s", offset, i, e.EventTime, e.EventType, strings.TrimPrefix(e.Subject, "/blobServices/default/containers/")); err != nil {
			return err
		}
	}
	return nil
}
