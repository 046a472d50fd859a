// Package demo runs the bridge between a sample feed that grows and an embedded broker.
package demo

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sr/srfake"

	"blobfeed/bridge"
	"blobfeed/internal/config"
	"blobfeed/internal/ops"
	"blobfeed/internal/plain"
	"blobfeed/internal/progress"
	"blobfeed/internal/setup"
	"blobfeed/internal/testing/feedsim"
	"blobfeed/verify/judge"
)

var topic = config.Defaults().Topic

// Options say how a demo runs.
type Options struct {
	Port    int    // of the embedded broker
	Named   bool   // somebody wants this port, and no other
	Page    string // address of the status page; off: none; empty: the usual one, or another
	Version string // of the program

	Format, Envelope string
}

// Run runs a bridge until ctx ends, prints what a consumer of its topic reads, and judges the topic at the end.
func Run(ctx context.Context, how Options, stdout io.Writer) error {
	dir, err := os.MkdirTemp("", "bridge-demo")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	page, err := listen(how.Page)
	if err != nil {
		return err
	}
	if page != nil {
		defer page.Close()
	}
	cluster, err := broker(how.Port, how.Named)
	if err != nil {
		return err
	}
	defer cluster.Close()
	address := cluster.ListenAddrs()[0]
	conf := settings(address, dir)
	conf.Format, conf.Envelope = how.Format, how.Envelope
	if conf.Format == "avro" {
		registry := srfake.New()
		defer registry.Close()
		conf.RegistryURL = []string{registry.URL()}
	}
	record, problems := setup.Record(conf)
	if err := errors.Join(append(problems, record.Validate())...); err != nil {
		return &plain.SettingsError{Problem: err.Error()}
	}
	sayTaken(stdout, how.Port, address)
	fmt.Fprintf(stdout, "An embedded Kafka broker is at %[1]s, and the bridge's name is %[3]s. "+
		"Read along in another terminal:\n\n"+
		"    kcat -C -b %[1]s -t %[2]s -o beginning\n"+
		"    BRIDGE_KAFKA_BROKERS=%[1]s BRIDGE_NAME=%[3]s %[4]s status\n\n", address, topic, conf.Name, os.Args[0])
	for _, registry := range conf.RegistryURL {
		fmt.Fprintf(stdout, "An embedded schema registry is at %[1]s:\n\n"+
			"    curl %[1]s/subjects/%[2]s-value/versions/latest\n\n", registry, topic)
	}
	if page != nil {
		at := page.Addr().(*net.TCPAddr)
		if how.Page == "" {
			sayTaken(stdout, pagePort, at.String())
		}
		if at.IP.IsUnspecified() {
			at.IP = net.IPv4(127, 0, 0, 1)
		}
		fmt.Fprintf(stdout, "The status page is at http://%s\n\n", at)
	}
	fmt.Fprint(stdout, "An hour of the sample feed takes ten seconds. It began three days ago, so the lag is days. "+
		"Times are those of the events. Offsets have gaps where transactions end. "+
		"Ctrl-C stops the demo, and bridge verify then judges the topic.\n\n")

	feed, err := feedsim.New(feedsim.Dir(dir), feedsim.Spec{
		Seed: uint64(time.Now().UnixNano()), Account: "demo", Shards: 3, Versions: []int{6},
		Start: time.Now().UTC().Truncate(time.Hour).Add(-72 * time.Hour),
	})
	if err != nil {
		return err
	}
	account := &account{feed: feed}
	for range 2 { // so that there is something to see at once
		if err := errors.Join(feed.Open(ctx), account.happen(ctx, 20), feed.Finalize(ctx)); err != nil {
			return err
		}
	}
	if err := feed.Open(ctx); err != nil {
		return err
	}
	o, err := setup.Options(conf, setup.Observe{})
	if err != nil {
		return err
	}
	log, shown := progress.New(conf, io.Discard)
	monitor := ops.NewMonitor(conf.Name, o.Feed.ID, ops.Info{
		Instance: conf.Instance, Version: how.Version, Topic: topic, Delivery: conf.Delivery,
	}, conf.Tuning.WatchdogTimeout, nil)
	monitor.Lists(o.Feed.Source)
	metrics := ops.NewMetrics(monitor)
	o.Kafka.Client = append(o.Kafka.Client, metrics.Hook())
	o.Log, o.Observer = log, bridge.Observers{shown, monitor}

	ended := make(chan error, 3)
	working, stop := context.WithCancel(ctx)
	defer stop()
	b := bridge.New(o)
	monitor.Watch(b)
	go func() {
		if page == nil {
			ended <- nil
			return
		}
		ended <- ops.Serve(working, page, new(ops.Guard).Wrap(ops.Handler(monitor, metrics)))
	}()
	go monitor.Keep(working)
	go func() { ended <- grow(working, account) }()
	go func() {
		defer stop()
		ended <- show(working, address, stdout)
	}()
	err = b.Run(working, context.Background())
	stop()
	err = errors.Join(err, <-ended, <-ended, <-ended)
	fmt.Fprintf(stdout, "\n%s\n", shown.Delivered())
	if err == nil {
		err = verify(context.WithoutCancel(ctx), conf, stdout)
	}
	fmt.Fprint(stdout, "\nNext: docs/quickstart.md\n")
	return err
}

// verify prints what bridge verify --feed says of the topic.
func verify(ctx context.Context, conf *config.Config, stdout io.Writer) error {
	o := judge.Options{ReadFeed: true}
	if err := o.Use(conf); err != nil {
		return err
	}
	reports, err := judge.Run(ctx, o)
	if err != nil {
		return err
	}
	fmt.Fprint(stdout, "\nbridge verify --feed says:\n\n")
	for _, r := range reports {
		fmt.Fprint(stdout, r.Text())
	}
	return judge.Verdict(reports)
}

// pagePort is where the status page usually is.
const pagePort = 8080

// listen returns a listener for the status page at an address; without one, at the usual port, or at another one if
// that is taken. It returns nil for off.
func listen(address string) (l net.Listener, err error) {
	switch address {
	case "off":
		return nil, nil
	case "":
		if l, err = net.Listen("tcp", fmt.Sprint("127.0.0.1:", pagePort)); err != nil {
			l, err = net.Listen("tcp", "127.0.0.1:0")
		}
	default:
		l, err = net.Listen("tcp", address)
	}
	if err != nil {
		return nil, plain.SettingsErrorf("%s_HTTP_ADDR: %v: set it to a free address, or to off", config.Prefix, err)
	}
	return l, nil
}

// broker starts the embedded broker: at the port, or at another one if that is taken and nobody named it.
func broker(port int, named bool) (*kfake.Cluster, error) {
	opts := []kfake.Opt{kfake.NumBrokers(1), kfake.SeedTopics(3, topic)}
	c, err := kfake.NewCluster(append(opts, kfake.Ports(port))...)
	if err != nil && named {
		return nil, plain.SettingsErrorf("--port %d: %v: choose another port, or 0 for any", port, err)
	}
	if err != nil {
		c, err = kfake.NewCluster(opts...)
	}
	if err != nil {
		return nil, fmt.Errorf("starting the embedded broker: %w", err)
	}
	return c, nil
}

// sayTaken says that something is at another port than usual.
func sayTaken(stdout io.Writer, port int, address string) {
	if !strings.HasSuffix(address, fmt.Sprint(":", port)) && port != 0 {
		fmt.Fprintf(stdout, "Port %d is taken.\n", port)
	}
}

// settings returns the defaults, but for where the demo is and how fast time passes in it.
func settings(address, dir string) *config.Config {
	c := config.Defaults()
	c.Name, c.Instance, c.SourceURL, c.KafkaBrokers = "demo", "demo", "file://"+dir, config.List{address}
	c.TopicPartitions, c.TopicReplication, c.OffsetsLeases = 3, 1, 4
	c.PollInterval, c.CommitInterval = 500*time.Millisecond, 200*time.Millisecond
	c.Tuning.QuietInterval = time.Millisecond
	return c
}

// grow appends to the feed every second, and starts a new segment every tenth time.
func grow(ctx context.Context, account *account) error {
	t := time.NewTicker(time.Second)
	defer t.Stop()
	for n := 1; ; n++ {
		select {
		case <-t.C:
		case <-ctx.Done():
			return nil
		}
		// Not ctx: a segment must not end half written.
		err := account.happen(context.Background(), 1+n%4)
		if n%10 == 0 {
			err = errors.Join(err, account.feed.Next(context.Background()))
		}
		if err != nil {
			return err
		}
	}
}

// show prints what a consumer reads: the first records in full, then one line each.
func show(ctx context.Context, address string, stdout io.Writer) error {
	cl, err := kgo.NewClient(kgo.SeedBrokers(address), kgo.ConsumeTopics(topic, plain.MarkerTopic(topic)),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.FetchMaxWait(200*time.Millisecond),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.DisableClientMetrics())
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
		var text strings.Builder
		fs.EachRecord(func(r *kgo.Record) {
			where := fmt.Sprintf("%s partition %d offset %-4d",
				r.Timestamp.UTC().Format("2006-01-02 15:04:05"), r.Partition, r.Offset)
			switch {
			case r.Key == nil:
				fmt.Fprintf(&text, "%s  resolved    %s\n", where, readable(r.Value))
			case shown < 2:
				fmt.Fprintf(&text, "%s\n    key    %s\n    value  %s\n", where, readable(r.Key), readable(r.Value))
				for _, h := range r.Headers {
					fmt.Fprintf(&text, "    header %s: %s\n", h.Key, plain.Line(string(h.Value)))
				}
				shown++
			default:
				fmt.Fprintf(&text, "%s  %-10s  %s\n", where, change(r), plain.Line(readable(r.Key)))
			}
		})
		if _, err := io.WriteString(stdout, text.String()); err != nil { // nobody reads along any more
			return err
		}
	}
}

// readable returns text as it is, and describes Avro by the id of its schema.
func readable(b []byte) string {
	switch {
	case b == nil:
		return "null"
	case len(b) > 5 && b[0] == 0:
		return fmt.Sprintf("schema %d, %d bytes of Avro: %.60q", binary.BigEndian.Uint32(b[1:]), len(b)-5, b[5:])
	}
	return string(b)
}

// change returns the short name of the event type: created, deleted, …
func change(r *kgo.Record) string {
	for _, h := range r.Headers {
		if h.Key == "ce_type" {
			name := strings.TrimPrefix(string(h.Value), "Microsoft.Storage.")
			return strings.ToLower(strings.TrimPrefix(name, "Blob"))
		}
	}
	return ""
}
