package bridge

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/partitioner"
	"blobfeed/verify"
)

// consume shows what is committed to validators, and counts data and markers.
func consume(t *testing.T, c *kfake.Cluster, notes ...verify.Validator) (data, markers int) {
	t.Helper()
	return consumeAll(t, c, []string{topic}, notes...)
}

func consumeAll(t *testing.T, c *kfake.Cluster, topics []string, notes ...verify.Validator) (data, markers int) {
	t.Helper()
	cl, err := kgo.NewClient(
		kgo.SeedBrokers(c.ListenAddrs()...),
		kgo.ConsumeTopics(topics...),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.KeepControlRecords(),
		kgo.FetchMaxWait(100*time.Millisecond),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
	)
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	ends, err := kadm.NewClient(cl).ListCommittedOffsets(t.Context(), topics...)
	if err != nil {
		t.Fatal(err)
	}
	type lane struct {
		topic string
		p     int32
	}
	left := map[lane]bool{}
	ends.Each(func(o kadm.ListedOffset) {
		if o.Offset > 0 {
			left[lane{o.Topic, o.Partition}] = true
		}
	})
	for len(left) > 0 {
		cl.PollFetches(t.Context()).EachRecord(func(r *kgo.Record) {
			if end, ok := ends.Lookup(r.Topic, r.Partition); ok && r.Offset+1 >= end.Offset {
				delete(left, lane{r.Topic, r.Partition})
			}
			if r.Attrs.IsControl() {
				return
			}
			v := verify.Record{Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, Key: r.Key, Value: r.Value}
			for _, h := range r.Headers {
				v.Headers = append(v.Headers, verify.Header(h))
			}
			if r.Key == nil {
				markers++
			} else {
				data++
			}
			for _, n := range notes {
				n.Note(v)
			}
		})
	}
	for _, n := range notes {
		for _, f := range n.Failures() {
			t.Errorf("%T: %v", n, f)
		}
	}
	return data, markers
}

func promises() []verify.Validator {
	return []verify.Validator{
		verify.NewUnique(),
		verify.NewOrder(),
		verify.NewResolved(partitions),
		verify.NewPartition(partitions, partitioner.Murmur2),
	}
}

// order notes the ids of records as they come on each partition.
type order struct {
	ids        []string
	partitions map[int32]bool
	last       string // marker
}

func (o *order) Note(r verify.Record) {
	if r.Key == nil {
		o.last = string(r.Value)
		return
	}
	if o.partitions == nil {
		o.partitions = map[int32]bool{}
	}
	o.partitions[r.Partition] = true
	o.ids = append(o.ids, string(r.Header("ce_id")))
}

func (o *order) Failures() []verify.Failure { return nil }

// sortedIDs returns what was noted, without the order between partitions.
func (o *order) sortedIDs() string {
	ids := slices.Clone(o.ids)
	slices.Sort(ids)
	return strings.Join(ids, " ")
}

// noted hands every record to a function.
type noted func(verify.Record)

func (n noted) Note(r verify.Record) { n(r) }

func (noted) Failures() []verify.Failure { return nil }
