package bridge

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"blobfeed/envelope"
	"blobfeed/internal/pause"
	"blobfeed/internal/testing/fakebroker"
	"blobfeed/offsets"
)

// suspectsIn looks for suspects of the scan "this" in a topic of one partition, and returns how often each was found,
// how many were found together at most, and how many keys are no paths.
func suspectsIn(t *testing.T, o Options, limit int) (found map[string]int, most int, skipped int64) {
	t.Helper()
	enc, err := o.Encoder(t.Context(), topic)
	must(t, err)
	s := &suspects{client: o.Client, topic: topic, encoder: enc, scan: "this", limit: limit, patience: readPatience}
	found = map[string]int{}
	must(t, s.find(t.Context(), func(keys []suspect) error {
		most = max(most, len(keys))
		for _, k := range keys {
			found[k.container+"/"+k.name]++
		}
		return nil
	}))
	return found, most, s.skipped
}

// A suspect is a key that lives in the topic, and has no row of the scan, and no record behind the first row.
func TestSuspects(t *testing.T) {
	t.Parallel()
	c := broker(t)
	o, _ := options(t, c, t.TempDir())
	createTopic(t, c, topic, 1, nil)
	const written, deleted = `{"after": {"etag": "1"}}`, `{"after": null}`
	record := func(name, value, scan string) *kgo.Record {
		r := &kgo.Record{Topic: topic, Key: []byte(`["c/` + name + `"]`), Value: []byte(value)}
		if scan != "" {
			r.Headers = []kgo.RecordHeader{{Key: envelope.ScanHeader, Value: []byte(scan)}}
		}
		return r
	}
	marker := &kgo.Record{Topic: topic, Value: []byte(`{"resolved":"5.0000000000"}`)}
	tombstone := record("tombstone", "", "")
	tombstone.Value = nil
	cl := fakebroker.Client(t, c, kgo.TransactionalID("writer"), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	transaction := func(end kgo.TransactionEndTry, rs ...*kgo.Record) {
		t.Helper()
		must(t, cl.BeginTransaction(), cl.ProduceSync(t.Context(), rs...).FirstErr(),
			cl.EndTransaction(t.Context(), end))
	}
	transaction(kgo.TryCommit, record("removed by retention", written, ""))
	ends, err := kadm.NewClient(cl).ListEndOffsets(t.Context(), topic)
	must(t, err)
	_, err = kadm.NewClient(cl).DeleteRecords(t.Context(), ends.Offsets())
	must(t, err)
	if found, _, _ := suspectsIn(t, o, 1<<20); len(found) > 0 {
		t.Errorf("found %v where retention has removed all", found)
	}
	transaction(kgo.TryCommit, record("lost", written, ""), record("deleted", written, ""),
		record("alive", written, ""), record("tombstone", written, ""), marker,
		&kgo.Record{Topic: topic, Key: []byte("no path"), Value: []byte(written)},
		tombstone, record("again", deleted, ""), record("again", written, ""),
		record("changed", written, ""), record("other scan", written, "that"), record("deleted", deleted, ""))
	transaction(kgo.TryAbort, record("aborted", written, ""))
	transaction(kgo.TryCommit, record("alive", written, "this"), record("changed", written, ""),
		record("behind", written, ""))
	// It does not wait for a transaction that is open.
	must(t, cl.BeginTransaction(), cl.ProduceSync(t.Context(), record("open", written, "")).FirstErr())
	want := map[string]int{"c/lost": 1, "c/again": 1, "c/other scan": 1}
	if found, _, skipped := suspectsIn(t, o, 1<<20); !maps.Equal(found, want) || skipped != 1 {
		t.Errorf("found %v, want %v; skipped %d", found, want, skipped)
	}
}

// A partition with more keys than fit into the memory is read several times, and each suspect is found once (I9).
func TestManySuspects(t *testing.T) {
	t.Parallel()
	c := broker(t)
	o, _ := options(t, c, t.TempDir())
	createTopic(t, c, topic, 1, nil)
	cl := fakebroker.Client(t, c)
	const keys, size, fit = 1000, len(`["c/0000"]`), 100
	var rs []*kgo.Record
	want := map[string]int{}
	for range 2 { // a repeated key takes no memory of its own, and a deleted one none
		for i := range keys {
			key := fmt.Appendf(nil, `["c/%04d"]`, i)
			rs = append(rs, &kgo.Record{Topic: topic, Key: key, Value: []byte("{}")})
			rs = append(rs, &kgo.Record{Topic: topic, Key: key, Value: []byte("{}")})
		}
		for i := range keys / 2 {
			rs = append(rs, &kgo.Record{Topic: topic, Key: fmt.Appendf(nil, `["c/%04d"]`, i), Value: nil})
		}
	}
	for i := keys / 2; i < keys; i++ {
		want[fmt.Sprintf("c/%04d", i)] = 1
	}
	must(t, cl.ProduceSync(t.Context(), rs...).FirstErr())
	for limit, alone := range map[int]bool{fit * size: false, keys * size: true} {
		found, most, _ := suspectsIn(t, o, limit)
		if !maps.Equal(found, want) || most*size > limit || alone != (most == keys/2) {
			t.Errorf("with %d bytes: %d found, %d of them together", limit, len(found), most)
		}
	}
}

// An end is proved by an answer of a broker. Where compaction has left nothing before the end, the leader says so. A
// leader that does not have what was committed, a partition without a leader and a broker that ends connections are
// errors, and never the end.
func TestSuspectsBehindAnEnd(t *testing.T) {
	t.Parallel()
	fetchFails := func(err *kerr.Error) func(*kfake.Cluster) {
		return func(c *kfake.Cluster) {
			c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Topic: topic, Err: err, Count: -1})
		}
	}
	for name, c := range map[string]struct {
		prepare func(c *kfake.Cluster)
		why     string // "": it is the end
	}{
		"compaction has removed the rest": {endsAt(5, 5), ""},
		"the leader has lost the rest":    {endsAt(5, 1), "no records for 1s: partition 0 is at offset 1 of 5"},
		"there is no leader":              {fetchFails(kerr.NotLeaderForPartition), "NOT_LEADER"},
		"the broker ends connections": {func(c *kfake.Cluster) {
			c.ControlKey(int16(kmsg.Fetch), func(kmsg.Request) (kmsg.Response, error, bool) {
				c.KeepControl()
				return nil, errors.New("no answer"), true
			})
		}, "no records for 1s: partition 0 is at offset 0 of 1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster := broker(t)
			o, _ := options(t, cluster, t.TempDir())
			createTopic(t, cluster, topic, 1, nil)
			must(t, fakebroker.Client(t, cluster).ProduceSync(t.Context(),
				&kgo.Record{Topic: topic, Key: []byte(`["c/lost"]`), Value: []byte("{}")}).FirstErr())
			enc, err := o.Encoder(t.Context(), topic)
			must(t, err)
			c.prepare(cluster)
			s := &suspects{client: o.Client, topic: topic, encoder: enc, limit: 1 << 20,
				patience: time.Second}
			keys, _, err := s.read(t.Context(), class{})
			if c.why == "" {
				if err != nil || len(keys) != 1 {
					t.Errorf("%d keys, %v", len(keys), err)
				}
			} else if err == nil || !strings.Contains(err.Error(), c.why) {
				t.Errorf("%d keys, %v; want %q", len(keys), err, c.why)
			}
		})
	}
}

// endsAt makes a cluster report an end behind its records, and answer fetches from there on with the offset that its
// leader has.
func endsAt(end, leader int64) func(*kfake.Cluster) {
	return func(c *kfake.Cluster) {
		c.ControlKey(int16(kmsg.ListOffsets), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
			c.KeepControl()
			req := kreq.(*kmsg.ListOffsetsRequest)
			if len(req.Topics) != 1 || len(req.Topics[0].Partitions) != 1 || req.Topics[0].Partitions[0].Timestamp != -1 {
				return nil, nil, false
			}
			resp := req.ResponseKind().(*kmsg.ListOffsetsResponse)
			p := kmsg.NewListOffsetsResponseTopicPartition()
			p.Offset = end
			resp.Topics = []kmsg.ListOffsetsResponseTopic{{Topic: topic,
				Partitions: []kmsg.ListOffsetsResponseTopicPartition{p}}}
			return resp, nil, true
		})
		c.ControlKey(int16(kmsg.Fetch), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
			c.KeepControl()
			req := kreq.(*kmsg.FetchRequest)
			if len(req.Topics) != 1 || req.Topics[0].Partitions[0].FetchOffset == 0 {
				return nil, nil, false
			}
			resp := req.ResponseKind().(*kmsg.FetchResponse)
			p := kmsg.NewFetchResponseTopicPartition()
			p.HighWatermark, p.LastStableOffset = leader, leader
			resp.Topics = []kmsg.FetchResponseTopic{{Topic: req.Topics[0].Topic, TopicID: req.Topics[0].TopicID,
				Partitions: []kmsg.FetchResponseTopicPartition{p}}}
			return resp, nil, true
		})
	}
}

// One lease of an instance reads at a time (I9).
func TestSweepWaitsForItsTurn(t *testing.T) {
	sh := &instance{sweeping: pause.NewTurn()} // no more than that: it would panic
	must(t, sh.sweeping.Take(t.Context()))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := sh.suspectsOf(ctx, &offsets.Scan{}, offsets.Lane{}, nil); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// A lease whose topics are read by nobody yet does not hold up a round: events are to be delivered.
func TestSweepIsPatient(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	waiting := &sweep{scan: "a", batch: make(chan batch)}
	l := &listing{t: &tenure{findings: &findings{sweep: waiting}}, scan: &offsets.Scan{ID: "a"}}
	finished, err := l.sweep(ctx)
	if finished || err != nil || ctx.Err() != nil {
		t.Errorf("finished %t, %v; the round %v", finished, err, ctx.Err())
	}
}
