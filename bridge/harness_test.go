package bridge

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/envelope"
	"blobfeed/internal/plain"
	"blobfeed/internal/testing/fakebroker"
	"blobfeed/internal/testing/feedsim"
	"blobfeed/internal/topics"
	"blobfeed/offsets"
	"blobfeed/partitioner"
	"blobfeed/source"
	"blobfeed/source/dir"
)

const (
	realFeed     = "../testdata/real-2020"
	realEvents   = 717
	realSegments = 10
	topic        = "changes"
	partitions   = 4
)

func init() {
	firstDelay, patience, topics.Patience = 10*time.Millisecond, 100*time.Millisecond, 2*time.Second
}

func broker(t *testing.T) *kfake.Cluster { return fakebroker.New(t) }

func options(t *testing.T, c *kfake.Cluster, feed string) (Options, *recorder) {
	t.Helper()
	store, err := dir.New(feed)
	if err != nil {
		t.Fatal(err)
	}
	r := &recorder{
		t:        t,
		changed:  make(chan struct{}, 1),
		failing:  make(chan struct{}, 1),
		done:     make(chan struct{}, 1),
		headroom: make(chan time.Duration, 1),
	}
	return Options{
		Name:     "test",
		Instance: "one",
		Once:     true,
		Observer: Observers{r},
		Log:      slog.New(slog.DiscardHandler),
		Feed:     Feed{Source: source.New(store, source.Options{}), ID: "feed"},
		Records: Records{
			Frozen: map[string]string{"BRIDGE_TOPIC": topic}, Events: envelope.EventsAll,
			Encoder:   encoder(envelope.Options{Events: envelope.EventsAll, Updated: true, KeyInValue: true}),
			Partition: partitioner.Murmur2, Markers: envelope.MarkersInline,
			ResolvedSlack: 15 * time.Minute,
		},
		Topics: Topics{
			Names: byTemplate(t, topic), Create: topics.Creation{Partitions: partitions, Replication: 1},
		},
		Kafka: Kafka{
			Client:        []kgo.Opt{kgo.SeedBrokers(c.ListenAddrs()...), kgo.MetadataMinAge(50 * time.Millisecond)},
			Transactional: true, TxnTimeout: 30 * time.Second, Session: 6 * time.Second, Leases: 4,
		},
		Pace: Pace{
			CommitInterval: 100 * time.Millisecond, TxnRecords: 100, TxnBytes: 1 << 20,
			BundleBytes: 1 << 20, BundleReaders: 4, PollInterval: 100 * time.Millisecond,
			Shutdown: 5 * time.Second,
		},
	}, r
}

// writeFeed makes a folder with a simulated feed.
func writeFeed(t *testing.T, spec feedsim.Spec) (dir string) {
	t.Helper()
	dir = t.TempDir()
	must(t, feedsim.Write(t.Context(), feedsim.Dir(dir), spec, nil))
	return dir
}

func byTemplate(t *testing.T, template string) *envelope.Topics {
	t.Helper()
	all, err := envelope.NewTopics(template, "account")
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func encoder(all envelope.Options) func(context.Context, string) (*envelope.Encoder, error) {
	return func(_ context.Context, topic string) (*envelope.Encoder, error) {
		o := all
		o.Topic = topic
		return envelope.NewEncoder(o)
	}
}

func runOnce(t *testing.T, o Options) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err := New(o).Run(ctx, ctx)
	if ctx.Err() != nil {
		t.Fatal("the run did not end")
	}
	return err
}

// run works in the background until the function it returns is called.
func run(t *testing.T, o Options) (stop func()) {
	t.Helper()
	o.Once = false
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- New(o).Run(ctx, context.Background()) }()
	return func() {
		t.Helper()
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func admin(t *testing.T, c *kfake.Cluster) *kadm.Client { return fakebroker.Admin(t, c) }

func createTopic(t *testing.T, c *kfake.Cluster, name string, partitions int32, configs map[string]*string) {
	t.Helper()
	_, err := admin(t, c).CreateTopic(t.Context(), partitions, 1, configs, name)
	must(t, err)
}

func setTopic(t *testing.T, c *kfake.Cluster, name, setting, value string) {
	t.Helper()
	change := []kadm.AlterConfig{{Op: kadm.SetConfig, Name: setting, Value: &value}}
	_, err := admin(t, c).AlterTopicConfigs(t.Context(), change, name)
	must(t, err)
}

// live runs a bridge until the test ends.
func live(t *testing.T, o Options) {
	t.Helper()
	o.Once = false
	b := New(o)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- b.Run(ctx, ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the run ended with %v", err)
		}
	})
}

// seize takes all leases of a bridge, as seek does.
func seize(t *testing.T, o Options) *offsets.Seized {
	t.Helper()
	cfg := o.lease()
	cfg.Instance, cfg.Now, cfg.Session = "operator", time.Now, nil
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	s, err := offsets.Seize(ctx, cfg, int(o.Kafka.Leases))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// awaitState returns when the state of a bridge is as wanted.
func awaitState(t *testing.T, o Options, what string, cond func(*offsets.State) bool) *offsets.State {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	v := offsets.NewView(o.offsetsTopic(), int(o.Kafka.Leases))
	viewing, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- v.Run(viewing, o.Kafka.Client...) }()
	defer func() { stop(); <-ended }()
	s, err := v.Await(ctx, cond)
	if err != nil {
		now, _, _ := v.Get()
		t.Fatalf("still not: %s\n%+v\nfrontier %+v", what, now, now.Frontier)
	}
	return s
}

func (o *Options) offsetsTopic() string { return plain.StateTopic(o.Name) }
