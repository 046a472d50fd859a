// Command bench measures the whole path, from files on disk to committed records, beside the ceiling: a transactional
// producer of the same client that writes the same records from memory. It does both in turn, on an embedded broker and
// on real Kafka, and prints the ratios, which are what counts: a machine's speed changes from minute to minute.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/envelope"
	"blobfeed/integration/stack"
	"blobfeed/internal/kafka"
	"blobfeed/internal/testing/feedsim"
	"blobfeed/partitioner"
	"blobfeed/source"
	"blobfeed/source/dir"
)

const (
	partitions  = 12
	txnRecords  = 50_000
	bundleBytes = 8 << 20
)

func main() {
	events := flag.Int("events", 400_000, "events of the feed")
	shards := flag.Int("shards", 3, "shards of the feed")
	rounds := flag.Int("rounds", 3, "how often both are measured")
	brokers := flag.Int("brokers", 1, "nodes of the real Kafka: 0, 1 or 3")
	segments := flag.Int("segments", 1, "with -variants, segments of the feed, which share its events")
	variants := flag.String("variants", "", "measure the program in a process of its own instead, with each of these "+
		"environments: default,GOMEMLIMIT=64MiB,BRIDGE_HEADERS=none+BRIDGE_FORMAT=avro")
	containers := flag.Int("containers", 3, "with -variants, containers of the blobs; BRIDGE_TOPIC={name}-{container} "+
		"gives each a topic")
	programs := flag.String("programs", "", "with -variants, programs to compare; else the one of this source")
	accounts := flag.Int("accounts", 0, "measure one process with this number of idle accounts, and then beside one "+
		"with the events of -events")
	appends := flag.Int("live", 0, "measure how long events take, while the feed grows each minute, this often; with "+
		"-variants and -programs, side by side")
	rows := flag.String("table", "", "measure rows of a table instead, each in turn with its base: all, an axis such "+
		"as shards, or a row such as shards=64")
	delay := flag.Duration("delay", -1, "with -variants, serve the feed over HTTP, each answer this late; negative: "+
		"the feed is a directory")
	away := flag.Bool("away", false, fmt.Sprintf("with -variants, brokers that are %s away", brokersAway))
	profile := flag.String("cpuprofile", "", "write a CPU profile to this file")
	flag.Parse()
	if *profile != "" {
		f, err := os.Create(*profile)
		if err == nil {
			err = pprof.StartCPUProfile(f)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
		defer pprof.StopCPUProfile()
	}
	measured := func(ctx context.Context) error { return run(ctx, *events, *shards, *rounds, *brokers) }
	if *accounts > 0 {
		measured = func(ctx context.Context) error { return manyAccounts(ctx, *accounts, *events, *brokers) }
	}
	list := func(s string) []string { return strings.FieldsFunc(s, func(r rune) bool { return r == ',' }) }
	if *variants != "" {
		measured = func(ctx context.Context) error {
			l, _ := table(*events)
			l.shards, l.containers, l.instances = *shards, *containers, *instances
			l.segments, l.each, l.delay = *segments, *events / *segments, *delay
			l.away = *away
			return asUsersRunIt(ctx, list(*programs), list(*variants), l, *rounds, *brokers)
		}
	}
	if *rows != "" {
		measured = func(ctx context.Context) error { return tabulate(ctx, list(*rows), *events, *rounds, *brokers) }
	}
	if *appends > 0 {
		measured = func(ctx context.Context) error {
			return live(ctx, list(*programs), list(cmp.Or(*variants, "default")), *appends, *brokers)
		}
	}
	if err := measured(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, events, shards, rounds, brokers int) error {
	root, err := os.MkdirTemp("", "bridge-bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(root)
	if err := feedsim.Write(ctx, feedsim.Dir(root), feedsim.Spec{Seed: 1, Shards: shards, EventsPerSegment: events,
		Blobs: 50_000, Versions: []int{5}}, nil); err != nil {
		return err
	}
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		return err
	}
	if err := measure(ctx, "kfake", cluster.ListenAddrs(), root, rounds); err != nil {
		return err
	}
	cluster.Close()
	if brokers == 0 {
		return nil
	}
	s, err := stack.Start(ctx, stack.Options{Brokers: brokers, Throughput: true}, nil)
	if err != nil {
		return err
	}
	return errors.Join(measure(ctx, fmt.Sprintf("Kafka, %d node(s)", brokers), s.KafkaBrokers, root, rounds), s.Close())
}

// measure alternates between the two, so that both see the same machine. The first round warms up.
func measure(ctx context.Context, name string, brokers []string, root string, rounds int) error {
	var raws, wholes, ratios []float64
	for round := range rounds + 1 {
		topic := fmt.Sprintf("bench-%d", time.Now().UnixNano())
		raw, err := ceiling(ctx, brokers, root, topic+"-raw")
		if err != nil {
			return err
		}
		whole, txns, err := whole(ctx, brokers, root, topic, bundleBytes)
		if err != nil {
			return err
		}
		if round == 0 {
			continue
		}
		fmt.Printf("%-18s  raw %8.0f/s   whole path %8.0f/s in %d transactions   ratio %.2f\n", name, raw, whole, txns,
			whole/raw)
		raws, wholes, ratios = append(raws, raw), append(wholes, whole), append(ratios, whole/raw)
	}
	fmt.Printf("%-18s  medians: raw %.0f/s, whole path %.0f/s, ratio %.2f\n", name, median(raws), median(wholes),
		median(ratios))
	return nil
}

// median returns the mean of the two in the middle if there is no single one.
func median(v []float64) float64 {
	slices.Sort(v)
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

func options(brokers []string) ([]kgo.Opt, error) {
	c := kafka.Client{Brokers: brokers, ID: "bench", Compression: "snappy", Buffered: 2 * txnRecords}
	return c.Options()
}

func create(ctx context.Context, brokers []string, topic string) error {
	cl, err := kgo.NewClient(kgo.SeedBrokers(brokers...))
	if err != nil {
		return err
	}
	defer cl.Close()
	_, err = kadm.NewClient(cl).CreateTopic(ctx, partitions, -1, nil, topic)
	return err
}

func open(root string) (*source.Feed, *envelope.Encoder, error) {
	store, err := dir.New(root)
	if err != nil {
		return nil, nil, err
	}
	e, err := envelope.NewEncoder(envelope.Options{Events: envelope.EventsAll, Updated: true, KeyInValue: true})
	return source.New(store, source.Options{}), e, err
}

// ceiling writes the records of the feed, encoded beforehand, with one producer.
func ceiling(ctx context.Context, brokers []string, root, topic string) (perSecond float64, err error) {
	records, err := encode(ctx, root, topic)
	if err != nil {
		return 0, err
	}
	if err := create(ctx, brokers, topic); err != nil {
		return 0, err
	}
	opts, err := options(brokers)
	if err != nil {
		return 0, err
	}
	cl, err := kgo.NewClient(append(opts, kgo.TransactionalID(topic),
		kgo.RecordPartitioner(kgo.ManualPartitioner()))...)
	if err != nil {
		return 0, err
	}
	defer cl.Close()
	if _, _, err := cl.ProducerID(ctx); err != nil {
		return 0, err
	}
	var mu sync.Mutex
	var failed error
	promise := func(_ *kgo.Record, err error) {
		if err != nil {
			mu.Lock()
			failed = err
			mu.Unlock()
		}
	}
	began := time.Now()
	for part := range slices.Chunk(records, txnRecords) {
		if err := cl.BeginTransaction(); err != nil {
			return 0, err
		}
		for i := range part {
			cl.Produce(ctx, &part[i], promise)
		}
		if err := errors.Join(cl.Flush(ctx), failed); err != nil {
			return 0, err
		}
		if err := cl.EndTransaction(ctx, kgo.TryCommit); err != nil {
			return 0, err
		}
	}
	return float64(len(records)) / time.Since(began).Seconds(), nil
}

func encode(ctx context.Context, root, topic string) (records []kgo.Record, err error) {
	feed, enc, err := open(root)
	if err != nil {
		return nil, err
	}
	for seg, err := range feed.Segments(ctx, source.Segment{}) {
		if err != nil {
			return nil, err
		}
		m, err := feed.Manifest(ctx, seg)
		if err != nil {
			return nil, err
		}
		for _, shard := range m.Shards {
			r := feed.Shard(m, shard, source.ShardPosition{})
			if err := r.Poll(ctx, true); err != nil {
				return nil, err
			}
			for {
				var b source.Batch
				if err := r.Next(ctx, &b); errors.Is(err, io.EOF) {
					break
				} else if err != nil {
					return nil, err
				}
				var buf []byte
				for i := range b.Events {
					var rec envelope.Record
					if buf, _, err = enc.Append(buf, &rec, &b.Events[i], source.Position{Segment: seg, Shard: shard,
						Chunk: b.Chunk, Offset: b.Offset, Index: i}); err != nil {
						return nil, err
					}
					out := kgo.Record{Topic: topic, Key: rec.Key, Value: rec.Value,
						Partition: partitioner.Murmur2(rec.Key, partitions), Timestamp: time.UnixMilli(rec.Millis)}
					for _, h := range rec.Headers {
						out.Headers = append(out.Headers, kgo.RecordHeader(h))
					}
					records = append(records, out)
				}
			}
		}
	}
	return records, nil
}
