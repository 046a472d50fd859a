package bridge

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"blobfeed/envelope"
	"blobfeed/internal/fakebroker"
	"blobfeed/offsets"
)

// suspectsIn looks for suspects of the scan "this" in a topic of one partition, and returns how often each was found,
// and how many were found together at most.
func suspectsIn(t *testing.T, o Options, limit int) (found map[string]int, most int) {
	t.Helper()
	enc, err := o.Encoder(t.Context(), topic)
	must(t, err)
	var warned bytes.Buffer // it has waited for records that never came
	s := &suspects{client: o.Client, topic: topic, encoder: enc, scan: "this", limit: limit, idle: suspectIdle,
		log: slog.New(slog.NewTextHandler(&warned, nil))}
	found = map[string]int{}
	must(t, s.find(t.Context(), func(keys []suspect) error {
		most = max(most, len(keys))
		for _, k := range keys {
			found[k.container+"/"+k.name]++
		}
		return nil
	}))
	if warned.Len() > 0 {
		t.Errorf("it warned: %s", &warned)
	}
	return found, most
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
	if found, _ := suspectsIn(t, o, 1<<20); len(found) > 0 {
		t.Errorf("found %v where retention has removed all", found)
	}
	transaction(kgo.TryCommit, record("lost", written, ""), record("deleted", written, ""),
		record("alive", written, ""), record("tombstone", written, ""), marker,
		tombstone, record("again", deleted, ""), record("again", written, ""),
		record("changed", written, ""), record("other scan", written, "that"), record("deleted", deleted, ""))
	transaction(kgo.TryAbort, record("aborted", written, ""))
	transaction(kgo.TryCommit, record("alive", written, "this"), record("changed", written, ""),
		record("behind", written, ""))
	// It does not wait for a transaction that is open.
	must(t, cl.BeginTransaction(), cl.ProduceSync(t.Context(), record("open", written, "")).FirstErr())
	want := map[string]int{"c/lost": 1, "c/again": 1, "c/other scan": 1}
	if found, _ := suspectsIn(t, o, 1<<20); !maps.Equal(found, want) {
		t.Errorf("found %v, want %v", found, want)
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
		found, most := suspectsIn(t, o, limit)
		if !maps.Equal(found, want) || most*size > limit || alone != (most == keys/2) {
			t.Errorf("with %d bytes: %d found, %d of them together", limit, len(found), most)
		}
	}
}

// Brokers report an end that no record leads to, as after compaction: it is taken for the end after some time. Until
// then, the end of the sweep ends the wait.
func TestSuspectsBehindAnEnd(t *testing.T) {
	t.Parallel()
	c := broker(t)
	o, _ := options(t, c, t.TempDir())
	createTopic(t, c, topic, 1, nil)
	must(t, fakebroker.Client(t, c).ProduceSync(t.Context(),
		&kgo.Record{Topic: topic, Key: []byte(`["c/lost"]`), Value: []byte("{}")}).FirstErr())
	c.ControlKey(int16(kmsg.ListOffsets), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		req := kreq.(*kmsg.ListOffsetsRequest)
		if len(req.Topics) != 1 || len(req.Topics[0].Partitions) != 1 || req.Topics[0].Partitions[0].Timestamp != -1 {
			return nil, nil, false
		}
		resp := req.ResponseKind().(*kmsg.ListOffsetsResponse)
		p := kmsg.NewListOffsetsResponseTopicPartition()
		p.Offset = 5
		resp.Topics = []kmsg.ListOffsetsResponseTopic{{Topic: topic,
			Partitions: []kmsg.ListOffsetsResponseTopicPartition{p}}}
		return resp, nil, true
	})
	enc, err := o.Encoder(t.Context(), topic)
	must(t, err)
	var warned bytes.Buffer
	s := &suspects{client: o.Client, topic: topic, encoder: enc, limit: 1 << 20, idle: 200 * time.Millisecond,
		log: slog.New(slog.NewTextHandler(&warned, nil))}
	keys, _, err := s.read(t.Context(), class{})
	must(t, err)
	if len(keys) != 1 || !strings.Contains(warned.String(), "end=5") {
		t.Errorf("%v: %s", keys, &warned)
	}
	s.idle = time.Hour
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { _, _, err := s.read(ctx, class{}); ended <- err }()
	time.AfterFunc(100*time.Millisecond, cancel)
	select {
	case err := <-ended:
		if err == nil {
			t.Error("it has found the end")
		}
	case <-time.After(20 * time.Second):
		t.Error("it still waits")
	}
}

// One lease of an instance reads at a time (I9).
func TestSweepWaitsForItsTurn(t *testing.T) {
	sh := &shared{sweeping: newTurn()} // no more than that: it would panic
	must(t, sh.sweeping.take(t.Context()))
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
	l := &listing{h: &hold{findings: &findings{sweep: waiting}}, scan: &offsets.Scan{ID: "a"}}
	finished, err := l.sweep(ctx)
	if finished || err != nil || ctx.Err() != nil {
		t.Errorf("finished %t, %v; the round %v", finished, err, ctx.Err())
	}
}
