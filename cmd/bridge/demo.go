package main

import (
	"cmp"
	"context"
	"encoding/binary"
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
	"github.com/twmb/franz-go/pkg/sr/srfake"

	"blobfeed/bridge"
	"blobfeed/internal/config"
	"blobfeed/internal/feedsim"
	"blobfeed/internal/plain"
)

var demoTopic = config.Defaults().Topic

func demoVerb(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	fs := flags("demo", "[--port N] [--for DURATION] [--format json|avro] [--envelope NAME]", stderr, nil)
	port := fs.Int("port", 19092, "port of the embedded broker; another one if it is taken")
	format := fs.String("format", cmp.Or(os.Getenv(config.Prefix+"_FORMAT"), config.Defaults().Format), "json, or avro with an embedded schema registry")
	envelope := fs.String("envelope", cmp.Or(os.Getenv(config.Prefix+"_ENVELOPE"), config.Defaults().Envelope), "wrapped, bare, row, key_only or enriched")
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
	return demo(ctx, *port, *format, *envelope, stdout)
}

// demo runs the bridge, as run does, between a feed in a temporary directory that grows and a broker in this process.
func demo(ctx context.Context, port int, format, envelope string, stdout io.Writer) error {
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
	fmt.Fprintf(stdout, "An embedded Kafka broker is at %s. Read along in another terminal:\n\n    kcat -C -b %s -t %s -o beginning\n\n", address, address, demoTopic)
	conf := demoConfig(address, dir)
	conf.Format, conf.Envelope = format, envelope
	if format == "avro" {
		registry := srfake.New()
		defer registry.Close()
		conf.RegistryURL = []string{registry.URL()}
		fmt.Fprintf(stdout, "An embedded schema registry is at %s:\n\n    curl %s/subjects/%s-value/versions/latest\n\n", registry.URL(), registry.URL(), demoTopic)
	}
	fmt.Fprint(stdout, "Times are those of the events; offsets have gaps, where transactions end. Ctrl-C stops the demo.\n\n")
	record, problems := recordOptions(conf)
	if err := errors.Join(append(problems, record.Validate())...); err != nil {
		return &usageError{err}
	}

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
	o, err := options(conf, observe{})
	if err != nil {
		return err
	}
	log, progress := logs(conf, io.Discard)
	o.Log, o.Observer = log, progress

	ended := make(chan error, 2)
	working, stop := context.WithCancel(ctx)
	defer stop()
	go func() { ended <- grow(working, feed) }()
	go func() { ended <- show(working, address, stdout) }()
	err = bridge.New(o).Run(working, context.Background())
	stop()
	err = errors.Join(err, <-ended, <-ended)
	fmt.Fprintf(stdout, "\n%d events read, %d records written: snapshots and the like change no blob. From here: docs/quickstart.md\n", progress.events.Load(), progress.records.Load())
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

// demoConfig returns the default settings, but for where the demo is and how fast time passes in it.
func demoConfig(address, dir string) *config.Config {
	c := config.Defaults()
	c.Name, c.Instance, c.SourceURL, c.KafkaBrokers = "demo", "demo", "file://"+dir, config.List{address}
	c.TopicPartitions, c.TopicReplication, c.OffsetsLeases = 3, 1, 4
	c.PollInterval, c.CommitInterval, c.Tuning.QuietInterval = 500*time.Millisecond, 200*time.Millisecond, time.Millisecond
	return c
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
	cl, err := kgo.NewClient(kgo.SeedBrokers(address), kgo.ConsumeTopics(demoTopic, demoTopic+".resolved"), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
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
				fmt.Fprintf(stdout, "%s  resolved    %s\n", where, readable(r.Value))
			case shown < 2:
				fmt.Fprintf(stdout, "%s\n    key    %s\n    value  %s\n", where, readable(r.Key), readable(r.Value))
				for _, h := range r.Headers {
					fmt.Fprintf(stdout, "    header %s: %s\n", h.Key, plain.Line(string(h.Value)))
				}
				shown++
			default:
				fmt.Fprintf(stdout, "%s  %-10s  %s\n", where, change(r), plain.Line(readable(r.Key)))
			}
		})
	}
}

// readable shows what is no text as the program's own are: Avro, with the id of its schema.
func readable(b []byte) string {
	switch {
	case b == nil:
		return "null"
	case len(b) > 5 && b[0] == 0:
		return fmt.Sprintf("schema %d, %d bytes of Avro: %.60q", binary.BigEndian.Uint32(b[1:]), len(b)-5, b[5:])
	}
	return string(b)
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
