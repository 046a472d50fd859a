package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"blobfeed/bridge"
	"blobfeed/envelope"
	"blobfeed/internal/config"
	"blobfeed/internal/ops"
	"blobfeed/internal/tracing"
	"blobfeed/partitioner"
	"blobfeed/source"
)

func runVerb(ctx context.Context, args []string, _, stderr io.Writer) error {
	fs := flags("run", "[--once]", stderr, func(w io.Writer) {
		fmt.Fprint(w, "\nSettings, from the environment (a secret also as <NAME>_FILE):\n")
		_ = config.Usage(w) // a failed write to the terminal has nobody to tell
	})
	once := fs.Bool("once", false, "deliver what the feed holds now, the open segment's events included, then exit")
	if err := parse(fs, args); err != nil {
		return err
	}
	c, err := config.Load(true)
	if err != nil {
		return &usageError{fmt.Errorf("settings:\n%w", err)}
	}
	_, err = work(ctx, c, *once, 0, stderr)
	return err
}

// work runs an instance to its end. Keys is the schema id of all keys, 0 for that of each topic.
func work(ctx context.Context, c *config.Config, once bool, keys int, stderr io.Writer) (*progress, error) {
	log, progress := logs(c, stderr)
	var monitor *ops.Monitor
	var observers bridge.Observers
	o, err := options(c, observe{
		storage: func(op string, status int, took time.Duration, received int64) {
			monitor.Requested(op, status, took, received)
		},
		registry: func(op string, status int, took time.Duration, known int) {
			monitor.SchemaRequested(op, status, took, known)
		},
	})
	if err != nil {
		return nil, &usageError{err}
	}
	o.Once = once
	pinKeys(&o, keys)
	monitor = ops.NewMonitor(info(c, &o, limitMemory(c, &o)), c.WatchdogTimeout, nil)
	metrics := ops.NewMetrics(monitor)
	o.Client = append(o.Client, metrics.Hook())
	observers = bridge.Observers{progress, monitor}
	traces, err := tracing.Start(ctx, tracing.Info{Name: c.Name, Instance: c.Instance, Version: versionText(), Topic: c.TopicPrefix + c.Topic}, log)
	if err != nil {
		return nil, &usageError{err}
	}
	if traces != nil {
		defer traces.Stop()
		o.Tracer, observers = traces, append(observers, traces)
	}
	o.Log, o.Observer = log, observers
	stopServing, err := serve(ctx, c, guard(c, log).Wrap(ops.Handler(monitor, metrics)), log)
	if err != nil {
		return nil, &usageError{err}
	}
	defer stopServing()
	starting := log.With("version", versionText(), "name", c.Name, "instance", c.Instance, "feed", o.FeedID,
		"topic", c.TopicPrefix+c.Topic, "delivery", c.Delivery)
	if dangers := c.Insecure(); len(dangers) > 0 {
		starting.Warn("starting", "insecure", dangers)
	} else {
		starting.Info("starting")
	}
	b := bridge.New(o)
	monitor.Watch(b)
	err = supervise(ctx, b, progress, monitor.Drain)
	if err == nil {
		log.Info("stopped", "events", progress.events.Load(), "records", progress.records.Load())
	}
	return progress, err
}

// supervise runs b until it ends or a signal comes: the first lets it commit and hand over, the second does not.
// Drain is called first of all, so that nobody counts on the instance any more.
func supervise(ctx context.Context, b *bridge.Bridge, p *progress, drain func()) error {
	hard, abort := context.WithCancel(ctx)
	defer abort()
	stop, cancel := context.WithCancel(hard)
	defer cancel()
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	go obey(hard, signals, func() { drain(); cancel() }, abort)
	go p.show(hard)
	go giveBack(hard, p.events.Load)
	ended := make(chan error, 1)
	go func() { ended <- b.Run(stop, hard) }()
	var err error
	select {
	case err = <-ended:
	case <-hard.Done():
		// Nothing is worth waiting for now, and brokers that are away would keep us waiting.
		err = errors.New("stopped by a second signal: open transactions are aborted, the next start repeats them")
	}
	p.finish()
	return err
}

// echo is how long after a signal one of its kind is the same: timeout(1), and whoever forwards what the terminal has sent to
// all, send it twice.
const echo = 100 * time.Millisecond

// obey calls first at the first signal and second at the second, unless ctx ends before.
func obey(ctx context.Context, signals <-chan os.Signal, first, second func()) {
	var heard os.Signal
	var at time.Time
	for {
		select {
		case s := <-signals:
			switch {
			case heard == nil:
				heard, at = s, time.Now()
				first()
			case s != heard || time.Since(at) > echo:
				second()
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// options turns settings into what a bridge is made of. Observe hears of requests to the storage service and the registry.
func options(c *config.Config, observe observe) (bridge.Options, error) {
	feed, id, account, err := observedFeed(c, observe)
	if err != nil {
		return bridge.Options{}, err
	}
	return optionsFor(c, feed, id, account, observe)
}

// optionsFor does so with a feed, or none for verbs that look at what is in Kafka.
func optionsFor(c *config.Config, feed *source.Feed, id, account string, observe observe) (bridge.Options, error) {
	record, topics, encoder, err := output(c, account, observe.registry)
	if err != nil {
		return bridge.Options{}, err
	}
	partition, err := partitioner.ByName(c.Partitioner)
	if err != nil {
		return bridge.Options{}, err
	}
	client, err := kafkaClient(c, c.Name+"-"+c.Instance, 2*c.TxnRecords)
	if err != nil {
		return bridge.Options{}, err
	}
	kafkaOptions, err := client.Options()
	if err != nil {
		return bridge.Options{}, err
	}
	start, err := bridge.ParseStart(c.Start)
	if err != nil {
		return bridge.Options{}, fmt.Errorf("%s_START: %w", config.Prefix, err)
	}
	var end envelope.Timestamp
	if c.EndTime != "" {
		if end, err = bridge.ParseEnd(c.EndTime); err != nil {
			return bridge.Options{}, fmt.Errorf("%s_END_TIME: %w", config.Prefix, err)
		}
	}
	o := bridge.Options{
		Start: start, End: end,
		Filter: envelope.Filter{
			Containers: c.Containers, ExcludeContainers: c.ExcludeContainers, Prefixes: c.Prefixes, ExcludePrefixes: c.ExcludePrefixes,
			Suffixes: c.Suffixes, ExcludeSuffixes: c.ExcludeSuffixes, EventTypes: c.EventTypes, ExcludeEventTypes: c.ExcludeEventTypes, BlobTypes: c.BlobTypes,
		},
		Name: c.Name, Instance: c.Instance,
		Feed: feed, FeedID: id, Topics: topics, Shared: c.TopicShared, Events: record.Events, Encoder: encoder,
		// What chooses a key's partition or a topic, and what a reader of the topic must know before it can read any of it.
		Frozen: map[string]string{
			"BRIDGE_TOPIC": c.TopicPrefix + c.Topic, "BRIDGE_EVENTS": c.Events, "BRIDGE_FORMAT": c.Format, "BRIDGE_ENVELOPE": record.Envelope.String(),
			"BRIDGE_KEY_FORMAT": record.KeyFormat.String(), "BRIDGE_PARTITIONER": c.Partitioner, "BRIDGE_RESOLVED_TO": record.Markers.String(),
			"BRIDGE_START": c.Start, "BRIDGE_END_TIME": c.EndTime, "BRIDGE_AVRO_TIMESTAMPS": record.AvroTimestamps.String(),
			// Nothing fences an owner without transactions: after a pause it would write into what transactions promise.
			"BRIDGE_DELIVERY": c.Delivery,
		},
		Client: kafkaOptions, Transactional: c.Delivery == "exactly_once", TxnTimeout: c.TxnTimeout, Session: c.SessionTimeout,
		EpochHeader: c.Delivery == "at_least_once" && c.Headers != "none",
		TopicLimit:  c.TopicLimit, AdoptTopics: c.TopicAdopt, TopicReplication: c.TopicReplication, BrokerCreates: c.TopicCreate == "broker", OffsetsPartitions: c.OffsetsLeases,
		Partition: partition, Markers: record.Markers, ResolvedSlack: c.ResolvedSlack,
		CommitInterval: c.CommitInterval, TxnRecords: c.TxnRecords, TxnBytes: int(c.TxnBytes),
		BundleBytes: int64(c.BundleBytes), BundleReaders: c.BundleReaders,
		SkipGaps: c.OnGap == "continue", PollInterval: c.PollInterval, QuietInterval: c.QuietInterval, Shutdown: c.ShutdownTimeout,
	}
	o.TopicTool = client.Tool("kafka-configs.sh")
	if c.OnError == "dead_letter" {
		o.DeadLetter = c.DeadLetterTopic()
	}
	// Compaction keeps the last value of a key: that is a table if values are rows, and deletions are null.
	o.Table = record.Envelope == envelope.Row && record.Deletes == envelope.DeletesTombstone && record.Markers != envelope.MarkersInline && record.Events == envelope.EventsState
	if o.Table && o.Shared {
		return bridge.Options{}, fmt.Errorf("%s_TOPIC_SHARED: compaction would keep one blob where two accounts have blobs with the same key; put {account} into %[1]s_TOPIC", config.Prefix)
	}
	if c.TopicCreate == "explicit" {
		o.TopicPartitions = c.TopicPartitions
	}
	return o, nil
}
