package bridge

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/internal/plain"
	"blobfeed/internal/testing/feedsim"
	"blobfeed/offsets"
	"blobfeed/partitioner"
	"blobfeed/verify"
)

// spread notes which partition counts explain where the keys of each segment are.
type spread struct{ counts map[string]map[int]bool }

func (s *spread) Note(r verify.Record) {
	if r.Key == nil {
		return
	}
	segment := string(r.Header("position"))[:15]
	if s.counts[segment] == nil {
		s.counts[segment] = map[int]bool{partitions: true, partitions + 3: true}
	}
	for n := range s.counts[segment] {
		if partitioner.Murmur2(r.Key, n) != r.Partition {
			delete(s.counts[segment], n)
		}
	}
}

func (s *spread) Failures() []verify.Failure { return nil }

// Partitions that are added while a segment is delivered are used from the next one on, and get markers from
// then on (I5).
func TestPartitionsAdded(t *testing.T) {
	t.Parallel()
	ctx, feed := t.Context(), t.TempDir()
	live, err := feedsim.New(feedsim.Dir(feed), feedsim.Spec{EventsPerSegment: 200})
	if err != nil {
		t.Fatal(err)
	}
	c := broker(t)
	o, _ := options(t, c, feed)
	grow := func() {
		t.Helper()
		if err := live.Append(ctx, 200, nil); err != nil {
			t.Fatal(err)
		}
		if err := runOnce(t, o); err != nil {
			t.Fatal(err)
		}
	}
	if err := live.Open(ctx); err != nil {
		t.Fatal(err)
	}
	grow()
	_, err = admin(t, c).CreatePartitions(ctx, 3, topic)
	must(t, err)
	grow() // the same segment: keys stay
	if err := live.Next(ctx); err != nil {
		t.Fatal(err)
	}
	grow() // the next one
	if err := live.Finalize(ctx); err != nil {
		t.Fatal(err)
	}
	if err := runOnce(t, o); err != nil {
		t.Fatal(err)
	}
	where := &spread{counts: map[string]map[int]bool{}}
	data, markers := consume(t, c, where, verify.NewUnique())
	if first, second := where.counts["2026/01/01/0000"], where.counts["2026/01/01/0100"]; !first[partitions] ||
		first[partitions+3] ||
		!second[partitions+3] ||
		second[partitions] {
		t.Errorf("segments are spread over %v", where.counts)
	}
	if data != 600 || markers != 2*(partitions+3) {
		t.Errorf("%d records, %d markers", data, markers)
	}
}

// A key stays on its partition until the marker, also if the topic is new, its partitions are added and the
// lease acquired again meanwhile (I5): the cursor has the pin.
func TestNewTopicIsPinned(t *testing.T) {
	t.Parallel()
	ctx, feed := t.Context(), t.TempDir()
	live, err := feedsim.New(feedsim.Dir(feed), feedsim.Spec{EventsPerSegment: 200, Blobs: 20})
	must(t, err)
	c := broker(t)
	o, _ := options(t, c, feed)
	o.Topics.Names = byTemplate(t, "{container}")
	must(t, live.Open(ctx), live.Append(ctx, 100, nil), runOnce(t, o))
	_, err = admin(t, c).CreatePartitions(ctx, 3, simTopics...)
	must(t, err, live.Append(ctx, 100, nil), runOnce(t, o))
	if data, _ := consumeAll(t, c, simTopics, verify.NewPartition(partitions, partitioner.Murmur2)); data != 200 {
		t.Errorf("%d records", data)
	}
	must(t, live.Finalize(ctx), runOnce(t, o))
	if _, markers := consumeAll(t, c, simTopics); markers != 3*(partitions+3) {
		t.Errorf("%d markers", markers)
	}
}

// A scan finds a topic that is new in this segment, and that got partitions since the first event: its rows are
// where the events of their keys are (I5). The lease that lists the container has delivered none of them.
func TestScanOfAGrownTopic(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 0, 0)
	c := broker(t)
	o := w.options(c)
	o.Topics.Names = byTemplate(t, "t-{container}")
	o.Kafka.Client = append(o.Kafka.Client, kgo.MetadataMinAge(10*time.Millisecond))
	name := ""
	for n := 0; name == "" || listerOf(o, name) != 3; n++ { // the feed has three shards
		name = fmt.Sprintf("c%d", n)
	}
	w.names = []string{name}
	w.change(100)
	w.publish(false)
	live(t, o)
	awaitDrained(t, o, w)
	_, err := admin(t, c).CreatePartitions(t.Context(), 3, "t-"+name)
	must(t, err)
	ask(t, o, offsets.Request{ID: "all", Time: time.Now()})
	awaitState(t, o, "the scan is done", isDone("all"))
	w.change(100)
	w.publish(false)
	awaitDrained(t, o, w)
	rows := 0
	consumeAll(t, c, []string{"t-" + name}, verify.NewPartition(partitions, partitioner.Murmur2),
		noted(func(r verify.Record) {
			if r.Scanned() {
				rows++
			}
		}))
	if rows == 0 {
		t.Error("no rows")
	}
}

// Partitions are added to the offsets topic: shards would change their leases. That is refused, while the bridge is
// away and while it runs.
func TestLeasesAdded(t *testing.T) {
	t.Parallel()
	grow := func(t *testing.T, c *kfake.Cluster, o Options) {
		cl, err := kgo.NewClient(o.Kafka.Client...)
		must(t, err)
		defer cl.Close()
		rs, err := kadm.NewClient(cl).UpdatePartitions(t.Context(), 8, o.offsetsTopic())
		must(t, err, rs.Error())
	}
	refused := func(t *testing.T, err error) {
		t.Helper()
		var settings *plain.SettingsError
		if !errors.As(err, &settings) || !strings.Contains(err.Error(), "test.offsets has 8 partitions") ||
			!strings.Contains(err.Error(), "bridge reset") {
			t.Errorf("err = %v", err)
		}
	}
	t.Run("while it is away", func(t *testing.T) {
		m, live := simulated(t, feedsim.Spec{Shards: 3})
		must(t, live.Append(t.Context(), 30, nil))
		c := broker(t)
		o, _ := over(t, c, m)
		must(t, runOnce(t, o))
		grow(t, c, o)
		refused(t, runOnce(t, o))
		s := seize(t, o) // the way out
		must(t, s.Reset(t.Context()))
		s.Close(t.Context())
		must(t, runOnce(t, o))
	})
	t.Run("while it runs", func(t *testing.T) {
		m, live := simulated(t, feedsim.Spec{Shards: 3})
		must(t, live.Append(t.Context(), 30, nil))
		c := broker(t)
		o, r := over(t, c, m)
		o.Once, o.Kafka.Client = false, append(o.Kafka.Client, kgo.MetadataMaxAge(100*time.Millisecond))
		ended := make(chan error, 1)
		go func() { ended <- New(o).Run(t.Context(), t.Context()) }()
		r.await(t, func(c Commit) bool { return c.Emitted == 30 })
		grow(t, c, o)
		select {
		case err := <-ended:
			refused(t, err)
		case <-time.After(30 * time.Second):
			t.Error("the run did not end")
		}
	})
}
