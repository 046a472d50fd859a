package offsets

import (
	"context"

	"github.com/twmb/franz-go/pkg/kgo"
)

// wave is what a producer without transactions has produced since its last flush: at most one batch for each
// partition. So when a broker rejects a batch, it has accepted nothing after that batch in its partition, and first
// deliveries are in order (I4).
type wave struct {
	batch   func(topic string) int32 // bytes of a batch
	records int                      // at most
	count   int
	bytes   map[string]map[int32]int // by topic and partition
}

func newWave(cl *kgo.Client) *wave {
	return &wave{
		batch:   cl.OptValue(kgo.ProducerBatchMaxBytesFn).(func(string) int32),
		records: int(cl.OptValue(kgo.MaxBufferedRecords).(int64)),
		bytes:   map[string]map[int32]int{},
	}
}

// Sizes of a record's lengths and of a batch's header at most, in Kafka's format.
const (
	batchOverhead  = 61
	recordOverhead = 40
	headerOverhead = 10
)

// fits adds r, unless that would begin a second batch.
func (o *wave) fits(r *kgo.Record) bool {
	size := recordOverhead + len(r.Key) + len(r.Value)
	for _, h := range r.Headers {
		size += headerOverhead + len(h.Key) + len(h.Value)
	}
	topic := o.bytes[r.Topic]
	if topic == nil {
		topic = map[int32]int{}
		o.bytes[r.Topic] = topic
	}
	have := topic[r.Partition]
	if o.count >= o.records || have > 0 && batchOverhead+have+size > int(o.batch(r.Topic)) {
		return false
	}
	o.count++
	topic[r.Partition] = have + size
	return true
}

func (o *wave) reset() {
	o.count = 0
	for _, topic := range o.bytes {
		clear(topic)
	}
}

// nextBatch begins another wave if r does not fit into this one.
func (l *Lease) nextBatch(ctx context.Context, r *kgo.Record) error {
	if l.wave.fits(r) {
		return nil
	}
	if err := l.flush(ctx); err != nil {
		return err
	}
	l.wave.fits(r)
	return nil
}
