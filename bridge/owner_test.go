package bridge

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"blobfeed/internal/plain"
	"blobfeed/internal/testing/feedsim"
	"blobfeed/offsets"
	"blobfeed/verify"
)

// named returns the options of a bridge of its own that reads a feed of its own.
func named(t *testing.T, c *kfake.Cluster, name, template string) (Options, *recorder) {
	t.Helper()
	o, r := options(t, c, realFeed)
	o.Name, o.Feed.ID, o.Topics.Names = name, "feed of "+name, byTemplate(t, template)
	o.Records.Frozen = map[string]string{"BRIDGE_TOPIC": template, "BRIDGE_RESOLVED_TO": o.Records.Markers.String()}
	return o, r
}

// refused runs o, which has to find that a topic belongs to another bridge.
func refused(t *testing.T, o Options, words ...string) {
	t.Helper()
	err := runOnce(t, o)
	var settings *plain.SettingsError
	if !errors.As(err, &settings) {
		t.Fatalf("%s: not refused: %v", o.Name, err)
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%q does not have %q", err, word)
		}
	}
}

// A topic has one bridge. The second one writes nothing, and no state either.
func TestTopicHasAnOwner(t *testing.T) {
	t.Parallel()
	for _, transactional := range []bool{true, false} {
		c := broker(t)
		a, r := named(t, c, "a", topic)
		a.Kafka.Transactional = transactional
		must(t, runOnce(t, a), runOnce(t, a)) // its own claim is no obstacle
		b, _ := named(t, c, "b", topic)
		b.Kafka.Transactional = transactional
		refused(t, b,
			"topic "+topic+" belongs to bridge a, which reads feed feed of a and has its state in topic a.offsets",
			"BRIDGE_TOPIC_SHARED=true")
		all, err := admin(t, c).ListTopics(t.Context())
		must(t, err)
		if data, _ := consume(t, c, promises()...); data != r.Emitted || all.Has("b.offsets") {
			t.Errorf("%d of %d records, topics %v", data, r.Emitted, all.Names())
		}
		inTopic := map[string]string{"BRIDGE_RESOLVED_TO": "topic"}
		claims := []offsets.Claim{{Name: "a", Topics: []string{topic}, Settings: inTopic}}
		of := b.Catalog()
		must(t, of.Sole([]string{"other"}, claims))
		for _, taken := range []string{"a.offsets", "a.dlq", plain.MarkerTopic(topic)} {
			if of.Sole([]string{taken}, claims) == nil {
				t.Errorf("%s is not bridge a's", taken)
			}
		}
	}
}

// Bridges of several feeds may share a topic if all of them say so. Their markers tell the feeds apart.
func TestSharedTopic(t *testing.T) {
	t.Parallel()
	c := broker(t)
	a, _ := named(t, c, "a", topic)
	must(t, runOnce(t, a))
	b, _ := named(t, c, "b", topic)
	b.Topics.Shared = true
	must(t, runOnce(t, b))
	must(t, runOnce(t, a)) // it has claimed the topic before
	claims, _, err := offsets.Claims(t.Context(), admin(t, c), "a", a.Kafka.Client...)
	must(t, err)
	of := a.Catalog()
	if err := of.Sole([]string{topic}, claims); err == nil || !strings.Contains(err.Error(), "belongs to bridge b") {
		t.Errorf("a check finds %v", err)
	}
	a.Topics.Shared = true
	of = a.Catalog()
	must(t, of.Sole([]string{topic}, claims))
	must(t, runOnce(t, a))
	twin, _ := named(t, c, "twin", topic)
	twin.Feed.ID, twin.Topics.Shared = a.Feed.ID, true
	refused(t, twin, "belongs to bridge a", "every event would come twice")
	feeds := map[string]int{}
	data, markers := consume(t, c, noted(func(r verify.Record) {
		if r.Key == nil {
			feeds[string(r.Header("feed"))]++
		}
	}))
	if data != 2*realEvents || markers != 2*realSegments*partitions ||
		feeds[""] != markers/2 || feeds["feed of b"] != markers/2 {
		t.Errorf("%d records, %d markers: %v", data, markers, feeds)
	}
}

// held is a log that stops its writer at a message until it is let go.
type held struct {
	slog.Handler
	at      string
	reached chan struct{}
	release chan struct{}
}

func (h *held) Enabled(context.Context, slog.Level) bool { return true }

func (h *held) Handle(_ context.Context, r slog.Record) error {
	if r.Message == h.at {
		close(h.reached)
		<-h.release
	}
	return nil
}

// Two first starts at a time: one has found no claim, and the other claims and delivers before it does.
func TestTwoFirstStarts(t *testing.T) {
	c := broker(t)
	a, _ := named(t, c, "a", topic)
	h := &held{
		Handler: slog.DiscardHandler, at: "topic created", reached: make(chan struct{}), release: make(chan struct{}),
	}
	a.Log = slog.New(h)
	ended := make(chan error, 1)
	go func() { ended <- New(a).Run(t.Context(), t.Context()) }()
	<-h.reached
	b, r := named(t, c, "b", topic)
	must(t, runOnce(t, b))
	close(h.release)
	var settings *plain.SettingsError
	if err := <-ended; !errors.As(err, &settings) || !strings.Contains(err.Error(), "belongs to bridge b") {
		t.Errorf("not refused: %v", err)
	}
	if data, _ := consume(t, c, promises()...); data != r.Emitted {
		t.Errorf("%d of %d records", data, r.Emitted)
	}
}

// Another bridge may start long before the first record: on an account without events, and behind a filter. The one
// whose record comes first keeps the topic, also if the other is restarted before that.
func TestTwoIdleBridges(t *testing.T) {
	t.Parallel()
	for _, restarted := range []bool{false, true} {
		c := broker(t)
		bridge := func(name string) (Options, *recorder, *feedsim.Feed) {
			m, feed := simulated(t, feedsim.Spec{})
			sim, r := over(t, c, m)
			o, _ := named(t, c, name, topic)
			o.Feed.Source, o.Observer, o.Pace.PollInterval = sim.Feed.Source, sim.Observer, sim.Pace.PollInterval
			o.Once = false
			return o, r, feed
		}
		a, wrote, feed := bridge("a")
		live(t, a)
		b, _, late := bridge("b")
		if restarted {
			once := b
			once.Once = true
			must(t, runOnce(t, once)) // it has a frontier, and no record
		}
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second) // it ends before
		defer cancel()
		ended := make(chan error, 1)
		go func() { ended <- New(b).Run(ctx, ctx) }()
		awaitState(t, b, "it waits for events", func(s *offsets.State) bool {
			return s.Frontier != nil && s.Owners[0] == b.Instance
		})
		must(t, feed.Append(t.Context(), 20, nil))
		wrote.await(t, func(c Commit) bool { return c.Emitted == 20 })
		must(t, late.Append(t.Context(), 20, nil))
		var settings *plain.SettingsError
		if err := <-ended; !errors.As(err, &settings) || !strings.Contains(err.Error(), "belongs to bridge a") {
			t.Errorf("restarted %t: not refused: %v", restarted, err)
		}
		if data, _ := consume(t, c, promises()...); data != 20 {
			t.Errorf("restarted %t: %d records", restarted, data)
		}
	}
}

// A reset withdraws the claim: another bridge may go on with the topic, and then the first one may not.
func TestResetWithdrawsClaim(t *testing.T) {
	t.Parallel()
	c := broker(t)
	a, _ := named(t, c, "a", topic)
	must(t, runOnce(t, a))
	s := seize(t, a)
	must(t, s.Reset(t.Context()))
	s.Close(t.Context())
	must(t, runOnce(t, a)) // it may begin again, and claims the topic
	b, _ := named(t, c, "b", topic)
	createTopic(t, c, "b.offsets", b.Kafka.Leases, map[string]*string{"cleanup.policy": new("compact")})
	refused(t, b, "belongs to bridge a")
	for _, o := range []Options{a, b} {
		if o.Name == "b" {
			refused(t, b, "holds records", "bridge reset --yes") // nobody claims them: they may be its own
		}
		s = seize(t, o)
		must(t, s.Reset(t.Context()))
		s.Close(t.Context())
	}
	must(t, runOnce(t, b))
	refused(t, a, "belongs to bridge b")
}

// With a template every topic has one bridge, those of the open segment too, which only cursors know.
func TestTopicsOfTemplatesHaveOwners(t *testing.T) {
	t.Parallel()
	m, live := simulated(t, feedsim.Spec{EventsPerSegment: 200})
	must(t, live.Append(t.Context(), 100, nil))
	c := broker(t)
	feed := func(o Options, _ *recorder) Options {
		sim, _ := over(t, c, m)
		o.Feed.Source = sim.Feed.Source
		return o
	}
	a := feed(named(t, c, "a", "{container}"))
	must(t, runOnce(t, a), runOnce(t, a))
	refused(t, feed(named(t, c, "b", "photos")), "topic photos belongs to bridge a")
	refused(t, feed(named(t, c, "c", "{container}")), "belongs to bridge a") // at the first event of another feed
	d := feed(named(t, c, "d", "{container}"))
	d.Feed.ID = a.Feed.ID
	refused(t, d, "belongs to bridge a", "every event would come twice") // at its first event
	e := feed(named(t, c, "e", "blobs-{account}.{container}"))
	must(t, runOnce(t, e))
	if data, _ := consumeAll(t, c, simTopics, verify.NewUnique(), verify.NewOrder()); data != 100 {
		t.Errorf("%d records", data)
	}
}

// A topic with the name of a state that no bridge wrote is no obstacle.
func TestForeignState(t *testing.T) {
	t.Parallel()
	c := broker(t)
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	must(t, err)
	defer cl.Close()
	for name, key := range map[string]string{
		"connect.offsets": "source", "odd.offsets": "frontier", "empty.offsets": "",
	} {
		createTopic(t, c, name, 2, nil)
		if key != "" {
			r := &kgo.Record{Topic: name, Key: []byte(key), Value: []byte("no document")}
			must(t, cl.ProduceSync(t.Context(), r).FirstErr())
		}
	}
	o, _ := named(t, c, "a", topic)
	must(t, runOnce(t, o))
	if data, _ := consume(t, c, promises()...); data != realEvents {
		t.Errorf("%d records", data)
	}
}

// A start costs the same beside one bridge and beside a thousand: nobody reads the states of others for an empty topic,
// or for one of the own state.
func TestStartReadsNoOtherState(t *testing.T) {
	t.Parallel()
	c := broker(t)
	for i := range 20 {
		createTopic(t, c, plain.StateTopic(fmt.Sprintf("other-%d", i)), 1, nil)
	}
	var asked atomic.Int32
	c.Control(func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		var names []string
		switch req := req.(type) {
		case *kmsg.ListOffsetsRequest:
			for _, t := range req.Topics {
				names = append(names, t.Topic)
			}
		case *kmsg.MetadataRequest:
			for _, t := range req.Topics {
				if t.Topic != nil {
					names = append(names, *t.Topic)
				}
			}
			if req.Topics == nil {
				names = []string{"other"} // all of the cluster
			}
		}
		if slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(name, "other") }) {
			asked.Add(1)
		}
		return nil, nil, false
	})
	m, feed := simulated(t, feedsim.Spec{})
	o, r := over(t, c, m)
	o.Once = false
	for records := 20; records <= 60; records += 20 { // a first start, and others
		stop := run(t, o)
		must(t, feed.Append(t.Context(), 20, nil))
		r.await(t, func(c Commit) bool { return c.Emitted == records })
		stop()
	}
	o.Once = true
	if n := asked.Load(); n > 0 {
		t.Errorf("%d requests about other bridges", n)
	}
	twin := o
	twin.Name = "twin"
	refused(t, twin, "belongs to bridge test")
	if asked.Load() == 0 {
		t.Error("no request, although the topic holds records")
	}
}
