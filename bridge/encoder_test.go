package bridge

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"blobfeed/envelope"
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
	o.Topics, o.OffsetsPartitions = byTemplate(t, "{container}"), 1
	var registered atomic.Bool
	encode := o.Encoder
	o.Encoder = func(ctx context.Context, topic string) (*envelope.Encoder, error) {
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
