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
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/bridge"
	"blobfeed/config"
	"blobfeed/integration/feedsim"
)

const demoTopic = "blob-changes"

func demoVerb(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	fs := flags("demo", "[--port N] [--for DURATION]", stderr, nil)
	port := fs.Int("port", 19092, "port of the embedded broker; another one if it is taken")
	limit := fs.Duration("for", 0, "stop by itself after so long; 0: at Ctrl-C")
	if err := parse(fs, args); err != nil {
		return err
	}
	ctx, cancel := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if *limit > 0 {
		ctx, cancel = context.WithTimeout(ctx, *limit)
		defer cancel()
	}
	return demo(ctx, *port, stdout)
}

// demo runs the bridge, as run does, between a feed in a temporary directory that grows and a broker in this process.
func demo(ctx context.Context, port int, stdout io.Writer) error {
	dir, err := os.MkdirTemp("", "bridge-demo")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	cluster, err := broker(port)
	if err != nil {
		return err
	}
	defer cluster.Close()
	address := cluster.ListenAddrs()[0]
	fmt.Fprintf(stdout, "An embedded Kafka broker is at %s. Read along in another terminal:\n\n    kcat -C -b %s -t %s -o beginning\n\nCtrl-C stops the demo.\n\n", address, address, demoTopic)

	feed, err := feedsim.New(feedsim.Dir(dir), feedsim.Spec{
		Seed: uint64(time.Now().UnixNano()), Account: "demo", Shards: 3, EventsPerSegment: 60, Blobs: 40, HotShare: 0.2,
		Start: time.Now().UTC().Truncate(time.Hour).Add(-6 * time.Hour), Versions: []int{6},
	})
	if err != nil {
		return err
	}
	for range 2 { // something to see at once
		if err := errors.Join(feed.Open(ctx), feed.Append(ctx, 20, nil), feed.Finalize(ctx)); err != nil {
			return err
		}
	}
	if err := feed.Open(ctx); err != nil {
		return err
	}
	o, err := options(demoConfig(address, dir))
	if err != nil {
		return err
	}
	log, progress := output(&config.Config{LogLevel: "warn", LogFormat: "text", ReportInterval: time.Hour}, io.Discard)
	o.Log, o.Observer = log, progress

	ended := make(chan error, 2)
	working, stop := context.WithCancel(ctx)
	defer stop()
	go func() { ended <- grow(working, feed) }()
	go func() { ended <- show(working, address, stdout) }()
	err = bridge.New(o).Run(working, context.Background())
	stop()
	err = errors.Join(err, <-ended, <-ended)
	fmt.Fprintf(stdout, "\n%d events read, %d records written.\n", progress.events.Load(), progress.records.Load())
	return err
}

func broker(port int) (*kfake.Cluster, error) {
	opts := []kfake.Opt{kfake.NumBrokers(1), kfake.SeedTopics(3, demoTopic)}
	c, err := kfake.NewCluster(append(opts, kfake.Ports(port))...)
	if err != nil { // taken
		c, err = kfake.NewCluster(opts...)
	}
	if err != nil {
		return nil, fmt.Errorf("starting the embedded broker: %w", err)
	}
	return c, nil
}

func demoConfig(address, dir string) *config.Config {
	return &config.Config{
		Name: "demo", Instance: "demo", SourceURL: "file://" + dir, PollInterval: 500 * time.Millisecond, ReadSize: 1 << 20,
		KafkaBrokers: []string{address}, KafkaCompression: "snappy", Delivery: "exactly_once", Topic: demoTopic, TopicCreate: "off",
		TopicReplication: 1, OffsetsLeases: 4, Events: "state", KeyFormat: "json_array", Partitioner: "murmur2", Updated: true, KeyInValue: true,
		Headers: "cloudevents", ResolvedTo: "inline", ResolvedSlack: 15 * time.Minute, CommitInterval: 200 * time.Millisecond,
		TxnRecords: 1000, TxnBytes: 1 << 20, BundleBytes: 1 << 20, BundleReaders: 4, TxnTimeout: 40 * time.Second, SessionTimeout: 10 * time.Second, ShutdownTimeout: 5 * time.Second,
	}
}

// grow appends to the feed every second, and begins a new segment every tenth time: hours pass quickly here.
func grow(ctx context.Context, feed *feedsim.Feed) error {
	t := time.NewTicker(time.Second)
	defer t.Stop()
	for n := 1; ; n++ {
		select {
		case <-t.C:
		case <-ctx.Done():
			return nil
		}
		// Not ctx: a segment that is half written at the end would be of no use to anybody.
		err := feed.Append(context.Background(), 1+n%4, nil)
		if n%10 == 0 {
			err = errors.Join(err, feed.Next(context.Background()))
		}
		if err != nil {
			return fmt.Errorf("growing the sample feed: %w", err)
		}
	}
}

// show prints what a consumer reads: the first records whole, then a line each.
func show(ctx context.Context, address string, stdout io.Writer) error {
	cl, err := kgo.NewClient(kgo.SeedBrokers(address), kgo.ConsumeTopics(demoTopic), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.FetchMaxWait(200*time.Millisecond), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		return fmt.Errorf("reading the demo's topic: %w", err)
	}
	defer cl.Close()
	shown := 0
	for {
		fs := cl.PollFetches(ctx)
		if ctx.Err() != nil {
			return nil
		}
		fs.EachRecord(func(r *kgo.Record) {
			where := fmt.Sprintf("%s partition %d offset %-4d", r.Timestamp.UTC().Format("2006-01-02 15:04:05"), r.Partition, r.Offset)
			switch {
			case r.Key == nil:
				fmt.Fprintf(stdout, "%s  resolved    %s\n", where, r.Value)
			case shown < 2:
				fmt.Fprintf(stdout, "%s\n    key    %s\n    value  %s\n", where, r.Key, r.Value)
				for _, h := range r.Headers {
					fmt.Fprintf(stdout, "    header %s: %s\n", h.Key, h.Value)
				}
				shown++
			default:
				fmt.Fprintf(stdout, "%s  %-10s  %s\n", where, change(r), r.Key)
			}
		})
	}
}

// change names what happened, short: created, deleted, …
func change(r *kgo.Record) string {
	for _, h := range r.Headers {
		if h.Key == "ce_type" {
			return strings.ToLower(strings.TrimPrefix(strings.TrimPrefix(string(h.Value), "Microsoft.Storage."), "Blob"))
		}
	}
	return ""
}
