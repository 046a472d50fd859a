package bridge

import (
	"strings"
	"testing"

	"blobfeed/internal/history"
	"blobfeed/offsets"
)

// noBlock is what is no block, and long enough to be told as that.
var noBlock = []byte(strings.Repeat("garbage ", 20))

const openChunk = "/2026/01/01/0000/00000.avro"

// A chunk of an open segment whose header is damaged: whether more of it comes is not known until the segment
// is finalized. Then it goes to the dead-letter topic.
func TestDamageUntilFinalized(t *testing.T) {
	t.Parallel()
	m := newMemory()
	shards := map[int][]happened{0: {{"1", "2026-01-01T00:10:00Z", "a"}}}
	m.segment("2026/01/01/0000", "Publishing", 60, shards)
	m.replace("log/00"+openChunk, "Obj", "Xbj")
	o, r := over(t, broker(t), m)
	o.Topics.DeadLetter, o.Pace.BundleBytes = deadTopic, 0
	live(t, o)
	r.awaitFailure(t, "header")
	m.segment("2026/01/01/0000", "Finalized", 60, shards)
	r.await(t, func(c Commit) bool { return c.Dead == 1 })
}

// Two shards of one lease in an open segment: one is damaged and stays, the other grows, and is read on.
func TestDamageBesideAGrowingShard(t *testing.T) {
	t.Parallel()
	m := newMemory()
	m.segment("2026/01/01/0000", "Publishing", 60,
		map[int][]happened{0: {{"1", "2026-01-01T00:10:00Z", "a"}}, 1: {{"2", "2026-01-01T00:10:00Z", "b"}}})
	must(t, m.Append(t.Context(), "log/00"+openChunk, noBlock))
	o, r := over(t, broker(t), m)
	o.Kafka.Leases = 1
	live(t, o)
	r.await(t, func(c Commit) bool { return c.Emitted == 2 })
	r.awaitFailure(t, "log/00"+openChunk)
	must(t, m.Append(t.Context(), "log/01"+openChunk, avro(false, happened{"3", "2026-01-01T00:11:00Z", "b"})))
	r.await(t, func(c Commit) bool { return c.Emitted == 3 })
}

// One shard of a lease is damaged and keeps retrying; what another meets meanwhile, which only a new tenure
// of the lease can mend, is done.
func TestTroubleBesideDamage(t *testing.T) {
	t.Parallel()
	m := newMemory()
	m.segment(
		"2026/01/01/0000",
		"Finalized",
		60,
		map[int][]happened{
			0: {{"1", "2026-01-01T00:10:00Z", "a"}},
			1: {{"2", "2026-01-01T00:10:00Z", strings.Repeat("b", 900)}},
		},
	)
	must(t, m.Append(t.Context(), "log/00"+openChunk, noBlock))
	c := broker(t)
	low, high := "1300", "1000000"
	createTopic(t, c, topic, partitions, map[string]*string{"max.message.bytes": &low})
	o, r := over(t, c, m)
	o.Kafka.Leases, o.Pace.BundleBytes = 1, 0
	live(t, o)
	r.awaitFailure(t, "max.message.bytes")
	r.awaitFailure(t, "log/00"+openChunk)
	setTopic(t, c, topic, "max.message.bytes", high)
	r.await(t, func(c Commit) bool { return c.Emitted == 2 })
}

// A seek past damage that nothing can be done about arrives: the lease that reads it again and again hears of the move.
func TestSeekPastDamage(t *testing.T) {
	t.Parallel()
	feed, _, _ := damagedFeed(t, []byte(strings.Repeat("garbage", 20)))
	c := broker(t)
	o, r := options(t, c, feed)
	o.Pace.BundleBytes = 0
	live(t, o)
	awaitState(t, o, "the damage is in the cursor",
		func(s *offsets.State) bool { return s.Cursors[0] != nil && s.Cursors[0].Error != nil })
	for range 5 { // so that nothing is left to write that would meet a fence
		<-r.failing
	}
	s := seize(t, o)
	target, err := history.ParseTarget("2026/01/01/0100")
	must(t, err)
	must(t, s.Seek(t.Context(), target.Move))
	s.Close(t.Context())
	awaitState(t, o, "the segment behind the damage is delivered", func(s *offsets.State) bool {
		return s.Frontier != nil && s.Frontier.Completed.String() == "2026/01/01/0100"
	})
}
