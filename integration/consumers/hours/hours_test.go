package hours_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/integration/consumers/hours"
)

var begin = time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)

func stamp(after time.Duration) string {
	return fmt.Sprintf("%d.0000000000", begin.Add(after).UnixNano())
}

func change(path string, after time.Duration) *kgo.Record {
	key := fmt.Sprintf("[%q]", path)
	return &kgo.Record{Key: []byte(key), Value: fmt.Appendf(nil, `{"after": null, "key": %s, "updated": "%s"}`, key,
		stamp(after))}
}

func resolved(after time.Duration) *kgo.Record {
	return &kgo.Record{Value: fmt.Appendf(nil, `{"resolved":"%s"}`, stamp(after))}
}

// sample is a topic with two complete hours, one that is not, and an aborted marker that says it were.
func sample() (brokers []string, topic string, partitions int) {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(2, "blob-changes"))
	if err != nil {
		log.Fatal(err)
	}
	cl, err := kgo.NewClient(kgo.SeedBrokers(cluster.ListenAddrs()...), kgo.DefaultProduceTopic("blob-changes"),
		kgo.TransactionalID("sample"),
		kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		log.Fatal(err)
	}
	defer cl.Close()
	const minute = time.Minute
	for _, txn := range []struct {
		end     kgo.TransactionEndTry
		records [2][]*kgo.Record
	}{
		{kgo.TryCommit, [2][]*kgo.Record{
			{change("photos/a.jpg", 10*minute), change("photos/c.jpg", 60*minute-time.Second), resolved(45 * minute)},
			{change("photos/b.jpg", 20*minute), resolved(45 * minute)},
		}},
		{kgo.TryAbort, [2][]*kgo.Record{{resolved(300 * minute)},
			{change("photos/x.jpg", 70*minute), resolved(300 * minute)}}},
		{kgo.TryCommit, [2][]*kgo.Record{
			{change("photos/c.jpg", 60*minute), resolved(105 * minute)},
			{change("photos/b.jpg", 130*minute), resolved(105 * minute)},
		}},
		{kgo.TryCommit, [2][]*kgo.Record{{change("photos/a.jpg", 140*minute), resolved(120 * minute)},
			{resolved(120 * minute)}}},
	} {
		if err := cl.BeginTransaction(); err != nil {
			log.Fatal(err)
		}
		for p, records := range txn.records {
			for _, r := range records {
				r.Partition = int32(p)
				if err := cl.ProduceSync(context.Background(), r).FirstErr(); err != nil {
					log.Fatal(err)
				}
			}
		}
		if err := cl.EndTransaction(context.Background(), txn.end); err != nil {
			log.Fatal(err)
		}
	}
	return cluster.ListenAddrs(), "blob-changes", 2
}

// However partitions interleave, and wherever the consumer crashes and goes on at its checkpoint: each change of a
// complete hour is in that hour, once, and no hour comes twice.
func TestRestarts(t *testing.T) {
	const partitions, segments = 3, 12
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 0))
		var logs [partitions][]*kgo.Record
		want := map[string][]string{}
		for s := range segments {
			for p := range logs {
				for range rng.IntN(4) {
					after := time.Duration(s)*time.Hour + time.Duration(rng.Int64N(int64(time.Hour)))
					path := fmt.Sprintf("%d/%d", p, len(logs[p]))
					logs[p] = append(logs[p], change(path, after))
					if s < segments-1 { // the last marker is before the end of the last hour
						hour := begin.Add(after).Truncate(time.Hour).String()
						want[hour] = append(want[hour], fmt.Sprintf("[%q]", path))
					}
				}
				// A marker at the very end of the hour, or some minutes before: then the next one completes it.
				early := []time.Duration{0, 15 * time.Minute}[s%2]
				logs[p] = append(logs[p], resolved(time.Duration(s+1)*time.Hour-early))
			}
		}
		got := map[string][]string{}
		var stored []byte // the checkpoint, as a consumer keeps it
		for running := true; running; {
			from := hours.Checkpoint{Next: make([]int64, partitions)}
			if stored != nil {
				if err := json.Unmarshal(stored, &from); err != nil {
					t.Fatal(err)
				}
			}
			b, next := hours.New(partitions, from), slices.Clone(from.Next)
			for running {
				var left []int
				for p := range logs {
					if int(next[p]) < len(logs[p]) {
						left = append(left, p)
					}
				}
				if running = len(left) > 0; !running {
					break
				}
				p := left[rng.IntN(len(left))]
				r := logs[p][next[p]]
				complete, err := b.Add(int32(p), next[p], r.Key, r.Value)
				if err != nil {
					t.Fatal(err)
				}
				next[p]++
				crash := false
				for _, hour := range complete {
					if crash {
						break
					}
					if !slices.IsSortedFunc(hour.Changes, func(a, b hours.Change) int {
						return cmp.Or(cmp.Compare(a.Partition, b.Partition), cmp.Compare(a.Offset, b.Offset))
					}) {
						t.Fatalf("seed %d: the changes of %s are not in the topic's order", seed, hour.Begin)
					}
					for p := range partitions {
						if hour.Checkpoint.Next[p] < from.Next[p] {
							t.Fatalf("seed %d: the checkpoint fell from %v to %v", seed, from, hour.Checkpoint)
						}
					}
					for _, c := range hour.Changes {
						got[hour.Begin.String()] = append(got[hour.Begin.String()], string(c.Key))
					}
					if stored, err = json.Marshal(hour.Checkpoint); err != nil {
						t.Fatal(err)
					}
					crash = rng.IntN(3) == 0
				}
				if crash || rng.IntN(40) == 0 {
					break
				}
			}
		}
		for _, m := range []map[string][]string{got, want} {
			for _, keys := range m {
				slices.Sort(keys)
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("seed %d: got\n%v\nwant\n%v", seed, got, want)
		}
	}
}

// A change of an hour that is done is an error, but not if it was read before the restart.
func TestLate(t *testing.T) {
	b := hours.New(1, hours.Checkpoint{})
	add := func(offset int64, r *kgo.Record) ([]hours.Hour, error) { return b.Add(0, offset, r.Key, r.Value) }
	for i, r := range []*kgo.Record{change("early", 70*time.Minute), change("a", time.Minute)} {
		if _, err := add(int64(i), r); err != nil {
			t.Fatal(err)
		}
	}
	complete, err := add(2, resolved(time.Hour))
	if err != nil || len(complete) != 1 {
		t.Fatalf("%d hours, %v", len(complete), err)
	}
	if _, err := add(3, change("b", 2*time.Minute)); !errors.Is(err, hours.ErrLate) {
		t.Errorf("a late change: %v", err)
	}
	if complete, err := add(4, resolved(3*time.Hour)); err != nil || len(complete) != 1 {
		t.Fatalf("%d hours, %v", len(complete), err)
	}
	if _, err := add(5, change("c", 130*time.Minute)); !errors.Is(err, hours.ErrLate) {
		t.Errorf("a late change of an hour that had none: %v", err)
	}
	from := complete[0].Checkpoint
	if from.Next[0] != 0 {
		t.Fatalf("goes on at %d, but the hour after needs offset 0", from.Next[0])
	}
	b = hours.New(1, from)
	if _, err := add(1, change("a", time.Minute)); err != nil {
		t.Errorf("a change that was handed over before the restart: %v", err)
	}
	if _, err := add(3, change("b", 2*time.Minute)); !errors.Is(err, hours.ErrLate) {
		t.Errorf("a late change after the restart: %v", err)
	}
}

// What is no record of the bridge stops the consumer.
func TestMalformed(t *testing.T) {
	for _, value := range []string{``, `[]`, `{}`, `{"updated": "1.5"}`, `{"updated": "x.0000000000"}`,
		`{"resolved": "1.0000000000"}`} {
		if _, err := hours.New(1, hours.Checkpoint{}).Add(0, 0, []byte("k"), []byte(value)); err == nil {
			t.Errorf("%q was accepted", value)
		}
	}
}
