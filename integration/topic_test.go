//go:build integration

package integration

import (
	"context"
	"fmt"
	"regexp"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/internal/topics"
	"blobfeed/verify"
)

const partitions = 6

var (
	unique atomic.Int64
	unfit  = regexp.MustCompile(`[^A-Za-z0-9._-]+`) // for names of topics
)

// names returns a bridge name and a topic of this test's own. The topic exists.
func names(t *testing.T, brokers []string, replication int16) (name, topic string) {
	t.Helper()
	name = fmt.Sprintf("%s-%d-%d", unfit.ReplaceAllString(t.Name(), "-"), time.Now().UnixNano(), unique.Add(1))
	topic = name + ".changes"
	cl := client(t, brokers)
	forever := "-1" // the real feed is older than the default retention, and a test may run when that is looked at
	if _, err := kadm.NewClient(cl).CreateTopic(t.Context(), partitions, replication,
		map[string]*string{"retention.ms": &forever}, topic); err != nil {
		t.Fatal(err)
	}
	return name, topic
}

// configure changes a setting of a topic.
func configure(t *testing.T, brokers []string, topic, name, value string) {
	t.Helper()
	changes := []kadm.AlterConfig{{Op: kadm.SetConfig, Name: name, Value: &value}}
	admin := kadm.NewClient(client(t, brokers))
	if _, err := admin.AlterTopicConfigs(t.Context(), changes, topic); err != nil {
		t.Fatal(err)
	}
	eventually(t, time.Minute, "the broker has heard of it from the controller", func() bool {
		all, err := topics.Read(t.Context(), admin, topic)
		return err == nil && all[topic][name] == value
	})
}

func client(t *testing.T, brokers []string, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	cl, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(brokers...), kgo.MetadataMinAge(100 * time.Millisecond),
		kgo.FetchMaxWait(200 * time.Millisecond)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	return cl
}

// consumer reads a topic from its start, read_committed, as users do.
type consumer struct {
	cl     *kgo.Client
	topic  string
	notes  []verify.Validator
	data   int64
	marks  int64
	onNote func(verify.Record)
	next   map[int32]int64 // by partition: everything below was read, the ends of transactions included
}

func consume(t *testing.T, brokers []string, topic string, notes ...verify.Validator) *consumer {
	t.Helper()
	return &consumer{topic: topic, notes: notes, next: map[int32]int64{},
		cl: client(t, brokers, kgo.ConsumeTopics(topic),
			kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
			kgo.KeepControlRecords())}
}

// poll reads what is there within wait.
func (c *consumer) poll(ctx context.Context, wait time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	c.cl.PollFetches(ctx).EachRecord(func(r *kgo.Record) {
		c.next[r.Partition] = r.Offset + 1
		if r.Attrs.IsControl() {
			return
		}
		v := verify.Record{Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, Key: r.Key, Value: r.Value,
			Millis: r.Timestamp.UnixMilli()}
		for _, h := range r.Headers {
			v.Headers = append(v.Headers, verify.Header(h))
		}
		if r.Key == nil {
			c.marks++
		} else {
			c.data++
		}
		for _, n := range c.notes {
			n.Note(v)
		}
		if c.onNote != nil {
			c.onNote(v)
		}
	})
}

// until polls until cond holds.
func (c *consumer) until(t *testing.T, limit time.Duration, what string, cond func() bool) {
	t.Helper()
	deadline := time.Now().Add(limit)
	for !cond() {
		if time.Now().After(deadline) {
			t.Fatalf("after %s still not: %s (%d records, %d markers)", limit, what, c.data, c.marks)
		}
		c.poll(t.Context(), 500*time.Millisecond)
	}
}

// drain reads all that was written by now, and is or will be committed.
func (c *consumer) drain(t *testing.T) {
	t.Helper()
	// Not the committed ones: those of a transaction that was just committed come to the partitions some moments later.
	ends, err := kadm.NewClient(c.cl).ListEndOffsets(t.Context(), c.topic)
	if err != nil {
		t.Fatal(err)
	}
	limit := time.Minute // and what a loaded machine needs for as many records
	ends.Each(func(o kadm.ListedOffset) { limit += time.Duration(o.Offset) * 100 * time.Microsecond })
	c.until(t, limit, "read to the end", func() bool {
		behind := false
		ends.Each(func(o kadm.ListedOffset) { behind = behind || c.next[o.Partition] < o.Offset })
		return !behind
	})
}

func (c *consumer) check(t *testing.T) {
	t.Helper()
	for _, n := range c.notes {
		for _, f := range n.Failures() {
			t.Errorf("%T: %v", n, f)
		}
	}
}
