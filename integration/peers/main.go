// Command peers delivers one simulated feed with the bridge and with plain readers that use Azure's SDKs, each in turn
// on the same endpoint and the same node of Kafka. It writes results.json and the charts docs/images/peers-*.svg.
//
// A plain reader is what a user of an SDK writes first: iterate over the events, encode each as JSON, produce with
// acks=all and the client's defaults, flush at the end. It keeps no position and reads one event after the other. Each
// is a directory here, whose versions are pinned by its package manager's file.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"blobfeed/integration/stack"
)

const (
	results = "integration/peers/results.json"
	images  = "docs/images/peers-%s.svg"
)

func main() {
	if len(os.Args) > 2 && os.Args[1] == meterVerb {
		os.Exit(meter(os.Args[2:]))
	}
	rounds := flag.Int("rounds", 2, "how often each is measured; the fastest round counts")
	segments := flag.Int("segments", 10, "segments of the feed")
	each := flag.Int("each", 50_000, "events of a segment")
	only := flag.String("only", "", "measure only these, separated by commas, and print without writing")
	draw := flag.Bool("draw", false, "draw the charts from results.json, without measuring")
	flag.Parse()
	if err := run(context.Background(), *segments, *each, *rounds, *only, *draw); err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, segments, each, rounds int, only string, draw bool) error {
	if draw {
		r, err := readReport(results)
		if err != nil {
			return err
		}
		return r.draw(images)
	}
	var chosen []peer
	for _, p := range peers {
		if only == "" || strings.Contains(","+only+",", ","+p.name+",") {
			chosen = append(chosen, p)
		}
	}
	if len(chosen) == 0 {
		return fmt.Errorf("choosing readers: -only=%s names none: name directories of integration/peers, or bridge",
			only)
	}
	report, err := measure(ctx, chosen, segments, each, rounds)
	if err != nil {
		return err
	}
	report.print(os.Stdout)
	if only != "" {
		return nil
	}
	if err := report.write(results); err != nil {
		return err
	}
	return report.draw(images)
}

// measure alternates between the readers, so that all see the same machine.
func measure(ctx context.Context, chosen []peer, segments, each, rounds int) (r report, err error) {
	cache, err := stack.CacheDir()
	if err != nil {
		return r, err
	}
	dirs, err := installAll(ctx, cache, chosen)
	if err != nil {
		return r, err
	}
	s, err := stack.Start(ctx, stack.Options{Brokers: 1, Throughput: true}, progress)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	f, server, err := serveFeed(ctx, segments, each)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	progress("wrote %d events of %d bytes", len(f.ids), f.bytes/int64(len(f.ids)))
	r = report{Date: time.Now().UTC().Format(time.DateOnly), EventBytes: f.bytes / int64(len(f.ids))}
	for round := range rounds {
		for i, p := range chosen {
			got, err := p.measure(ctx, s, dirs[p.name], f, round)
			if err != nil {
				return r, fmt.Errorf("measuring %s: %w", p.name, err)
			}
			progress("%-10s %8.0f events/s, %6.1f µs/event, %5d MB, %d of %d events delivered, %d duplicates", p.name,
				got.PerSecond, got.CPU, got.MB, got.Delivered, got.Events, got.Duplicates)
			if round == 0 {
				r.Peers = append(r.Peers, got)
			} else if got.PerSecond > r.Peers[i].PerSecond {
				r.Peers[i] = got
			}
		}
	}
	return r, nil
}

func progress(format string, args ...any) { fmt.Fprintf(os.Stderr, "peers: "+format+"\n", args...) }
