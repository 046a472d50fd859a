package offsets

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// The figures of docs/events.md: how many topics a template can make with Kafka's default max.message.bytes, of which
// the documents of the state take at most half.
func TestSize(t *testing.T) {
	const half = 1_048_588 / 2
	for _, c := range []struct{ name, schema, most int }{
		{20, 0, 12_700}, {20, 1234, 8_800}, {63, 0, 6_200}, {63, 1234, 3_700}, {240, 0, 2_000}, {240, 1234, 1_050},
	} {
		size := func(n int) int {
			pins := map[string]Pin{}
			for i := range n {
				digits := fmt.Sprint(i)
				pins[strings.Repeat("x", c.name-len(digits))+digits] = Pin{Partitions: 12, KeySchema: c.schema}
			}
			return new(Frontier).Size(pins)
		}
		if few, many := size(c.most), size(c.most+200); few > half || many <= half {
			t.Errorf("%d names of %d bytes, schema %d: %d bytes, 200 more make %d", c.most, c.name, c.schema, few, many)
		}
	}
}

// limit sets how large a record of the state may be.
func limit(t *testing.T, ctx context.Context, cfg *Config, bytes string) {
	t.Helper()
	cl, err := kgo.NewClient(cfg.Client...)
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	change := []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "max.message.bytes", Value: &bytes}}
	if _, err := kadm.NewClient(cl).AlterTopicConfigs(ctx, change, stateTopic); err != nil {
		t.Fatal(err)
	}
}

// Where the broker takes more than the client does by default, a document of that size is written.
func TestLargeDocument(t *testing.T) {
	cfg, ctx := cluster(t)
	limit(t, ctx, cfg, "4000000")
	l := acquire(t, ctx, cfg, viewOf(t, cfg), "a")
	c := l.Cursor()
	c.Pins = map[string]Pin{strings.Repeat("x", 2_000_000): {}}
	if err := openTx(l).Commit(ctx, c, nil); err != nil {
		t.Error(err)
	}
}

// A document that the topic does not take is named, with its size and what to do.
func TestDocumentTooLarge(t *testing.T) {
	cfg, ctx := cluster(t)
	cfg.Client = append(cfg.Client, kgo.ProducerBatchCompression())
	l := acquire(t, ctx, cfg, viewOf(t, cfg), "a")
	limit(t, ctx, cfg, "1000")
	c := l.Cursor()
	c.Pins = map[string]Pin{strings.Repeat("x", 2000): {}}
	if err := openTx(l).Commit(ctx, c, nil); err == nil || !strings.Contains(err.Error(), "bytes: raise max.message.bytes of") {
		t.Errorf("err = %v", err)
	}
}
