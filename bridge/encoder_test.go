package bridge

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"blobfeed/envelope"
	"blobfeed/internal/plain"
	"blobfeed/internal/testing/feedsim"
	"blobfeed/partitioner"
	"blobfeed/verify"
)

// One container of a template has no schema yet. Its shard waits, the lease's other shard continues, and when the
// schema is there nothing is missing and nothing came twice.
func TestTopicWithoutEncoder(t *testing.T) {
	t.Parallel()
	m := newMemory()
	m.segment("2026/01/01/0000", "Publishing", 60, map[int][]happened{
		0: {{"1", "2026-01-01T00:10:00Z", "a"}}, 1: {{"2", "2026-01-01T00:10:00Z", "b"}},
	})
	m.replace("log/00"+openChunk, "containers/c/", "containers/d/")
	c := broker(t)
	o, r := over(t, c, m)
	o.Topics.Names, o.Kafka.Leases = byTemplate(t, "{container}"), 1
	var registered atomic.Bool
	encode := o.Records.Encoder
	o.Records.Encoder = func(ctx context.Context, topic string) (*envelope.Encoder, error) {
		if topic == "d" && !registered.Load() {
			return nil, errors.New("no schema for d")
		}
		return encode(ctx, topic)
	}
	live(t, o)
	r.await(t, func(c Commit) bool { return c.Emitted == 1 })
	r.awaitFailure(t, "no schema for d")
	must(t, m.Append(t.Context(), "log/01"+openChunk, avro(false, happened{"3", "2026-01-01T00:11:00Z", "b"})))
	r.await(t, func(c Commit) bool { return c.Emitted == 2 })
	must(t, m.Append(t.Context(), "log/00"+openChunk, avro(false, happened{"4", "2026-01-01T00:11:00Z", "e"})))
	registered.Store(true)
	r.await(t, func(c Commit) bool { return c.Emitted == 4 })
	data, _ := consumeAll(t, c, []string{"c", "d"}, verify.NewUnique(), verify.NewOrder())
	if d, _ := consumeAll(t, c, []string{"d"}); data != 4 || d != 1 {
		t.Errorf("%d records, %d of them in the topic of the new container", data, d)
	}
}

// A deletion is two records, if so wished, and the second is a null with the same key and headers.
func TestDeletesBoth(t *testing.T) {
	c := broker(t)
	o, _ := options(t, c, realFeed)
	o.Records.Encoder = encoder(envelope.Options{Events: envelope.EventsAll, Deletes: envelope.DeletesBoth})
	must(t, runOnce(t, o))
	deletions, nulls := 0, 0
	var last verify.Record
	data, _ := consume(t, c, noted(func(r verify.Record) {
		switch {
		case string(r.Value) == `{"after": null}`:
			deletions++
		case r.Value == nil:
			nulls++
			if string(r.Key) != string(last.Key) || string(last.Value) != `{"after": null}` ||
				string(r.Header("position")) != string(last.Header("position")) {
				t.Errorf("a null for %s follows %s", r.Key, last.Value)
			}
		}
		last = r
	}))
	if deletions == 0 || nulls != deletions || data != realEvents+nulls {
		t.Errorf("%d records, %d deletions, %d nulls", data, deletions, nulls)
	}
}

// Keys hold the id of their schema: with another one they would move, so it is refused (I5), before a marker and after.
func TestKeySchemaChanged(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	for _, complete := range []bool{false, true} {
		m, live := simulated(t, feedsim.Spec{EventsPerSegment: 200})
		c := broker(t)
		for i, id := range []int{7, 7, 8} {
			must(t, live.Append(ctx, 20, nil))
			if complete {
				must(t, live.Next(ctx))
			}
			o, _ := over(t, c, m)
			o.Records.Encoder = encoder(
				envelope.Options{
					Events:    envelope.EventsAll,
					KeyFormat: envelope.KeyAvro,
					Register:  func(envelope.Subject) (int, error) { return id, nil },
				},
			)
			err := runOnce(t, o)
			var settings *plain.SettingsError
			const says = "schema 8 for the keys of topic changes, which were written with schema 7"
			refused := errors.As(err, &settings) && strings.Contains(err.Error(), says)
			if i < 2 && err != nil || i == 2 && !refused {
				t.Errorf("complete %t, run %d: %v", complete, i, err)
			}
		}
		if data, _ := consume(t, c, verify.NewPartition(partitions, partitioner.Murmur2)); data != 40 {
			t.Errorf("%d records", data)
		}
	}
}
