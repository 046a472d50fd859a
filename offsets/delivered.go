package offsets

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Delivered says that the last instance, which had --once, has left with all delivered that the feed had. It is for
// operators; nothing is derived from it.
type Delivered struct {
	Version int       `json:"version"`
	Owner   string    `json:"owner"`
	Time    time.Time `json:"timestamp"`
}

// Report writes to the topic that all is delivered.
func Report(ctx context.Context, cl *kgo.Client, topic string, d Delivered) error {
	d.Version = versionOfMoves
	return write(ctx, cl, topic, keyDelivered, d)
}

// write writes a document beside those of the leases. Its key is one of aside. It is in the partition of the frontier,
// so that a view that has passed the one knows the other.
func write(ctx context.Context, cl *kgo.Client, topic, key string, doc any) error {
	b, err := json.Marshal(doc)
	if err != nil {
		return fmt.Errorf("encoding the %s: %w", key, err)
	}
	writer, err := kgo.NewClient(append(cl.Opts(), kgo.RecordPartitioner(kgo.ManualPartitioner()))...)
	if err != nil {
		return fmt.Errorf("creating the Kafka client: %w", err)
	}
	defer writer.Close()
	record := &kgo.Record{Topic: topic, Partition: 0, Key: []byte(key), Value: b}
	if err := writer.ProduceSync(ctx, record).FirstErr(); err != nil {
		return fmt.Errorf("writing the %s to %s: %w", key, topic, classify(err))
	}
	return nil
}
