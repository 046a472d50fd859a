package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"blobfeed/bridge"
	"blobfeed/envelope"
	"blobfeed/internal/topics"
	"blobfeed/partitioner"
)

// watch notes when work began and ended: the start of the program and the joining of the group are not the path.
type watch struct {
	mu           sync.Mutex
	began, ended time.Time
	events, txns int
	failed       error
}

func (w *watch) Committed(c bridge.Commit) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = time.Now()
	if began := w.ended.Add(-c.Took); w.began.IsZero() || began.Before(w.began) {
		w.began = began
	}
	w.events += c.Emitted
	w.txns++
}

func (w *watch) Completed(bridge.Completion) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = time.Now()
}

func (w *watch) Failed(_ int32, err error) {
	if strings.Contains(err.Error(), "UNKNOWN_TOPIC") {
		return // just created
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failed = err
}

// whole runs the bridge from the first event to the marker.
func whole(ctx context.Context, brokers []string, root, topic string, bundle int64) (perSecond float64, txns int,
	err error) {
	feed, enc, err := open(root)
	if err != nil {
		return 0, 0, err
	}
	if err := create(ctx, brokers, topic); err != nil {
		return 0, 0, err
	}
	opts, err := options(brokers)
	if err != nil {
		return 0, 0, err
	}
	names, err := envelope.NewTopics(topic, "")
	if err != nil {
		return 0, 0, err
	}
	encoder := func(context.Context, string) (*envelope.Encoder, error) { return enc, nil }
	w := &watch{}
	o := bridge.Options{
		Name:     topic,
		Once:     true,
		Observer: bridge.Observers{w},
		Log:      slog.New(slog.DiscardHandler),
		Feed:     bridge.Feed{Source: feed, ID: root},
		Records: bridge.Records{
			Events: envelope.EventsAll, Encoder: encoder, Partition: partitioner.Murmur2,
			Markers: envelope.MarkersInline, ResolvedSlack: 15 * time.Minute,
		},
		Topics: bridge.Topics{
			Names: names, Create: topics.Creation{Partitions: partitions, Replication: -1},
		},
		Kafka: bridge.Kafka{
			Client: opts, Transactional: !*atLeastOnce, TxnTimeout: 40 * time.Second,
			Session: 10 * time.Second, Leases: 8,
		},
		Pace: bridge.Pace{
			CommitInterval: time.Second, TxnRecords: txnRecords, TxnBytes: 64 << 20, BundleBytes: bundle,
			BundleReaders: 16, PollInterval: time.Second, Shutdown: 10 * time.Second,
		},
	}
	var all errgroup.Group
	for i := range *instances {
		o.Instance = fmt.Sprint("bench-", i)
		all.Go(func() error { return bridge.New(o).Run(ctx, ctx) })
	}
	if err = errors.Join(all.Wait(), w.failed); err != nil {
		return 0, 0, err
	}
	return float64(w.events) / w.ended.Sub(w.began).Seconds(), w.txns, nil
}

// Of the bridges that are measured. With -variants, each instance is a process.
var (
	instances   = flag.Int("instances", 1, "bridges that share the work")
	atLeastOnce = flag.Bool("at-least-once", false,
		"measure them without transactions; the ceiling has them all the same")
	verified = flag.Bool("verify", false, "with -variants, measure bridge verify --feed, too")
)
