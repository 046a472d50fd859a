package ops

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

// The page has what was written to each partition of the topics of records, not of others, and not of too many.
func TestPartitions(t *testing.T) {
	m, engine, clock := watching(t)
	metrics := NewMetrics(m)
	cl, err := kgo.NewClient(metrics.Hook()) // the hook's metrics need one
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	hook := metrics.clients
	wrote := func(topic string, p int32, records int) {
		hook.OnProduceBatchWritten(kgo.BrokerMetadata{}, topic, p, kgo.ProduceBatchMetrics{NumRecords: records})
	}
	wrote("changes", 1, 10)
	if have := m.Snapshot().Partitions; len(have) != 0 {
		t.Errorf("before the state is known: %+v", have)
	}
	engine.state = state(nil)
	wrote("changes", 0, 3)
	wrote("changes", 1, 5)
	wrote("test.offsets", 1, 1)
	want := []Partition{{"changes", 0, 3, *clock}, {"changes", 1, 15, *clock}}
	have := m.Snapshot().Partitions
	if len(have) != 2 || have[0] != want[0] || have[1] != want[1] {
		t.Errorf("%+v, want %+v", have, want)
	}
	for p := range int32(mostWritten + 10) {
		wrote("changes", p, 1)
	}
	if have, kept := len(m.Snapshot().Partitions), len(m.written); have != mostPartitions || kept > mostWritten {
		t.Errorf("%d of %d partitions", have, kept)
	}
}
