package judge

import (
	"fmt"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/envelope"
	simulated "blobfeed/internal/testing/feedsim/account"
	"blobfeed/offsets"
	"blobfeed/source"
	"blobfeed/source/inventory"
)

// BenchmarkCensus compares a topic that is the account, without the time that brokers and the service take.
func BenchmarkCensus(b *testing.B) {
	const blobs = 200_000
	a := simulated.New(nil)
	for i := range blobs {
		a.Put("photos", inventory.Blob{Name: fmt.Sprintf("2026/01/%08d.jpg", i), Length: int64(i)})
	}
	encoder, err := envelope.NewEncoder(envelope.Defaults(envelope.JSON, envelope.Wrapped))
	if err != nil {
		b.Fatal(err)
	}
	x := &tape{records: map[int32][]*kgo.Record{}, from: map[int32]int64{}, to: map[int32]int64{0: 0}}
	for path, blob := range a.Blobs() {
		ev := source.Event{Subject: "/blobServices/default/containers/photos/blobs/" + path[len("photos/"):],
			ETag: blob.ETag, ContentLength: blob.Length, HasContentLength: true, BlobType: blob.BlobType,
			EventTime: "2026-01-01T00:00:00Z"}
		var r envelope.Record
		if _, err := encoder.AppendRow(nil, &r, &ev, &envelope.Scan{ID: "s"}); err != nil {
			b.Fatal(err)
		}
		x.add(&kgo.Record{Key: r.Key, Value: r.Value, Headers: []kgo.RecordHeader{{Key: "scan"}}})
	}
	v := &verification{limits: censusLimits}
	v.Feed.Inventory = &simulated.Store{Account: a}
	if v.Topics.Names, err = envelope.NewTopics(written, ""); err != nil {
		b.Fatal(err)
	}
	t, err := (&copied{topics: map[string]*tape{written: x}}).open(b.Context(), written)
	if err != nil {
		b.Fatal(err)
	}
	s := &judgedTopic{topic: t, encoder: encoder}
	v.state = &progressState{&offsets.State{Frontier: &offsets.Frontier{}}, stateTopic}
	for b.Loop() {
		c, err := v.newCensus([]*judgedTopic{s})
		if err != nil {
			b.Fatal(err)
		}
		c.parts, c.rows = 1, map[uint64]uint64{}
		if err := c.read(b.Context(), s); err != nil {
			b.Fatal(err)
		}
		if err := c.list(b.Context()); err != nil || len(c.rows)+len(c.differences) > 0 {
			b.Fatal(err, len(c.rows), len(c.differences))
		}
	}
	b.ReportMetric(float64(b.N*blobs)/b.Elapsed().Seconds(), "blobs/s")
}
