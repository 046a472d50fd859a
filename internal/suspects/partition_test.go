package suspects

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"blobfeed/envelope"
	"blobfeed/internal/testing/fakebroker"
	"blobfeed/internal/topics"
	"blobfeed/offsets"
)

const topic = "blobs"

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// withTopic returns brokers with a topic of one partition.
func withTopic(t *testing.T) *kfake.Cluster {
	t.Helper()
	c := fakebroker.New(t)
	_, err := fakebroker.Admin(t, c).CreateTopic(t.Context(), 1, 1, nil, topic)
	must(t, err)
	return c
}

func brokers(c *kfake.Cluster) []kgo.Opt { return []kgo.Opt{kgo.SeedBrokers(c.ListenAddrs()...)} }

func encoder(t testing.TB) *envelope.Encoder {
	t.Helper()
	enc, err := envelope.NewEncoder(envelope.Options{Topic: topic, Updated: true})
	if err != nil {
		t.Fatal(err)
	}
	return enc
}

const waited = "no records for 3s: "

func init() { topics.Patience = 3 * time.Second } // a busy machine answers late

// suspectsIn looks for suspects of the scan "this" in a topic of one partition, and returns how often each was found,
// and how many keys are no paths. Reads is how often the partition was read from its start.
func suspectsIn(t *testing.T, c *kfake.Cluster, limit int) (found map[string]int, reads int, skipped int64) {
	t.Helper()
	var begun atomic.Int32
	client := append(brokers(c), kgo.WithHooks(readingHook(func() { begun.Add(1) })))
	p := &partition{client: client, topic: topic, encoder: encoder(t), scan: "this", limit: limit}
	found = map[string]int{}
	must(t, p.find(t.Context(), func(keys []Suspect, _ int64) error {
		if len(keys) > atOnce {
			t.Errorf("%d suspects together", len(keys))
		}
		for _, k := range keys {
			found[k.Container+"/"+k.Name]++
		}
		return nil
	}))
	return found, int(begun.Load()), p.skipped
}

// readingHook is called for each client that fetches.
type readingHook func()

func (f readingHook) OnNewClient(cl *kgo.Client) {
	if cl.OptValue(kgo.KeepControlRecords).(bool) {
		f()
	}
}

// A suspect is a key that lives in the topic, and has no row of the scan, and no record behind the first row.
func TestSuspects(t *testing.T) {
	t.Parallel()
	c := withTopic(t)
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
	if found, _, _ := suspectsIn(t, c, 1<<20); len(found) > 0 {
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
	want := map[string]int{"c/lost": 1, "c/again": 1, "c/other scan": 1}
	if found, _, skipped := suspectsIn(t, c, 1<<20); !maps.Equal(found, want) || skipped != 1 {
		t.Errorf("found %v, want %v; skipped %d", found, want, skipped)
	}
}

// A transaction that is open hides what others have committed behind it: a deletion, perhaps. The reader waits for its
// end.
func TestSuspectsBehindAnOpenTransaction(t *testing.T) {
	t.Parallel()
	c := withTopic(t)
	record := func(name, value string) *kgo.Record {
		return &kgo.Record{Topic: topic, Key: []byte(`["c/` + name + `"]`), Value: []byte(value)}
	}
	transactional := func(id string) *kgo.Client {
		cl := fakebroker.Client(t, c, kgo.TransactionalID(id))
		must(t, cl.BeginTransaction())
		return cl
	}
	must(t, fakebroker.Client(t, c).ProduceSync(t.Context(), record("a", "{}"), record("b", "{}")).FirstErr())
	slow := transactional("slow")
	must(t, slow.ProduceSync(t.Context(), record("c", "{}")).FirstErr())
	other := transactional("other")
	must(t, other.ProduceSync(t.Context(), record("a", `{"after": null}`)).FirstErr(),
		other.EndTransaction(t.Context(), kgo.TryCommit))

	p := &partition{client: brokers(c), topic: topic, encoder: encoder(t), limit: 1 << 20}
	err := p.find(t.Context(), func(keys []Suspect, _ int64) error { t.Error(keys); return nil })
	if silent, is := errors.AsType[*topics.SilentError](err); !is || silent.At != 2 || silent.End != 5 {
		t.Errorf("while it is open: %v", err)
	}
	must(t, slow.EndTransaction(t.Context(), kgo.TryCommit))
	found, _, _ := suspectsIn(t, c, 1<<20)
	if want := map[string]int{"c/b": 1, "c/c": 1}; !maps.Equal(found, want) {
		t.Errorf("behind its end: %v, want %v", found, want)
	}
}

// A reader that continues where another one ended shows the other suspects, and counts what it skips as that one did.
func TestSuspectsContinue(t *testing.T) {
	t.Parallel()
	c := withTopic(t)
	const keys = 3 * atOnce / 2
	rs := []*kgo.Record{{Topic: topic, Key: []byte("no path"), Value: []byte("{}")}}
	for i := range keys {
		rs = append(rs, &kgo.Record{Topic: topic, Key: fmt.Appendf(nil, `["c/%d"]`, i), Value: []byte("{}")})
	}
	must(t, fakebroker.Client(t, c).ProduceSync(t.Context(), rs...).FirstErr())
	found, passed := 0, int64(0)
	for ended := errors.New("the owner is gone"); ; ended = nil {
		p := &partition{client: brokers(c), topic: topic, encoder: encoder(t), limit: 1 << 20,
			passed: passed}
		err := p.find(t.Context(), func(some []Suspect, to int64) error {
			found, passed = found+len(some), to
			return ended
		})
		if ended == nil {
			must(t, err)
			if found != keys || passed != keys+1 || p.skipped != 1 {
				t.Errorf("%d suspects up to %d, %d skipped", found, passed, p.skipped)
			}
			return
		}
		if found != atOnce || passed != atOnce+1 {
			t.Fatalf("%d suspects up to %d: %v", found, passed, err)
		}
	}
}

// A partition with more keys than fit into the memory is read several times, and each suspect is found once (I9). Keys
// that have rows are read once where they fit, and suspects take one more read: one for all parts if they are few.
func TestManySuspects(t *testing.T) {
	t.Parallel()
	c := withTopic(t)
	cl := fakebroker.Client(t, c)
	const keys = 2000
	var rs []*kgo.Record
	key := func(i int) []byte { return fmt.Appendf(nil, `["c/%04d"]`, i) }
	for range 2 { // a repeated key takes no memory of its own, and a deleted one none
		for i := range keys {
			rs = append(rs, &kgo.Record{Topic: topic, Key: key(i), Value: []byte("{}")},
				&kgo.Record{Topic: topic, Key: key(i), Value: []byte("{}")})
		}
		for i := range keys / 2 {
			rs = append(rs, &kgo.Record{Topic: topic, Key: key(i), Value: nil})
		}
	}
	rows := func(from, to int) (rs []*kgo.Record) {
		for i := from; i < to; i++ {
			rs = append(rs, &kgo.Record{Topic: topic, Key: key(i), Value: []byte("{}"),
				Headers: []kgo.RecordHeader{{Key: envelope.ScanHeader, Value: []byte("this")}}})
		}
		return rs
	}
	rs = append(rs, rows(keys/2, keys/2+100)...)
	must(t, cl.ProduceSync(t.Context(), rs...).FirstErr())
	want := map[string]int{}
	for i := keys/2 + 100; i < keys; i++ {
		want[fmt.Sprintf("c/%04d", i)] = 1
	}
	check := func(what string, limit, least, most int) {
		t.Helper()
		found, reads, _ := suspectsIn(t, c, limit)
		if !maps.Equal(found, want) || reads < least || reads > most {
			t.Errorf("%s, with %d bytes: %d found, of %d; %d reads", what, limit, len(found), len(want), reads)
		}
	}
	check("all keys fit", keys*9, 2, 2)
	check("more than half of them fit", keys*9*6/10, 3, 4)
	check("a few of them fit", keys*9/40, 30, 200)
	must(t, cl.ProduceSync(t.Context(), rows(keys/2, keys-40)...).FirstErr())
	clear(want)
	for i := keys - 40; i < keys; i++ {
		want[fmt.Sprintf("c/%04d", i)] = 1
	}
	check("an eighth of them fits, and suspects are few", keys*9/5, 8+1, 8+1)
	must(t, cl.ProduceSync(t.Context(), rows(keys-40, keys)...).FirstErr())
	clear(want)
	check("there is no suspect", keys*9, 1, 1)
}

// An end is proved by an answer of a broker. Where compaction has left nothing before the end, the leader says so. A
// leader that does not have what was committed, a partition without a leader and a broker that ends connections are
// errors, and never the end.
func TestSuspectsBehindAnEnd(t *testing.T) {
	t.Parallel()
	endsAt := func(leader int64) func(*kfake.Cluster) {
		return func(c *kfake.Cluster) { fakebroker.EndsAt(c, topic, 5, leader) }
	}
	fetchFails := func(err *kerr.Error) func(*kfake.Cluster) {
		return func(c *kfake.Cluster) {
			c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Topic: topic, Err: err, Count: -1})
		}
	}
	for name, c := range map[string]struct {
		prepare func(c *kfake.Cluster)
		why     string // "": it is the end
	}{
		"compaction has removed the rest": {endsAt(5), ""},
		"the leader has lost the rest":    {endsAt(1), waited + "partition 0 is at offset 1 of 5"},
		"there is no leader":              {fetchFails(kerr.NotLeaderForPartition), "NOT_LEADER"},
		"the broker ends connections": {func(c *kfake.Cluster) {
			c.ControlKey(int16(kmsg.Fetch), func(kmsg.Request) (kmsg.Response, error, bool) {
				c.KeepControl()
				return nil, errors.New("no answer"), true
			})
		}, waited + "partition 0 is at offset 0 of 1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster := withTopic(t)
			must(t, fakebroker.Client(t, cluster).ProduceSync(t.Context(),
				&kgo.Record{Topic: topic, Key: []byte(`["c/lost"]`), Value: []byte("{}")}).FirstErr())
			c.prepare(cluster)
			p := &partition{client: brokers(cluster), topic: topic, encoder: encoder(t), limit: 1 << 20}
			var keys []Suspect
			err := p.find(t.Context(), func(some []Suspect, _ int64) error {
				keys = append(keys, some...)
				return nil
			})
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

// One reader of a process reads at a time (I9).
func TestReaderWaitsForItsTurn(t *testing.T) {
	ended := errors.New("ended")
	r := Read(t.Context(), Options{
		Scan: &offsets.Scan{}, Turn: func(context.Context) (func(), error) { return nil, ended },
	}, []offsets.Lane{{Topic: topic}})
	defer r.Stop()
	if b, ok := <-r.Batches; ok || !errors.Is(r.Err(), ended) {
		t.Errorf("%v, %v", b, r.Err())
	}
}
