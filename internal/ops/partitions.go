package ops

import (
	"cmp"
	"slices"
	"time"

	"blobfeed/offsets"
)

// Example is a record of an invented event under the settings: what consumers get.
type Example struct {
	Key     string   `json:"key"`
	Value   string   `json:"value"`
	Headers []string `json:"headers"` // name: value
}

// Partition is what this instance has written to a partition since its start, aborted transactions included.
type Partition struct {
	Topic     string    `json:"topic"`
	Partition int32     `json:"partition"`
	Records   int       `json:"records"` // and markers
	Last      time.Time `json:"last"`
}

const (
	// mostWritten bounds the memory: more partitions are not counted.
	mostWritten = 10_000
	// mostPartitions is how many the status has.
	mostPartitions = 100
)

type partition struct {
	topic string
	p     int32
}

type written struct {
	records int
	last    time.Time
}

// Wrote takes note of a batch that the brokers have taken.
func (m *Monitor) Wrote(topic string, p int32, records int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	at := partition{topic, p}
	have, known := m.written[at]
	if known || len(m.written) < mostWritten {
		m.written[at] = written{have.records + records, m.now()}
	}
}

// partitions returns what was written to the topics of records, by topic and partition.
func (m *Monitor) partitions(f *offsets.Frontier) []Partition {
	out := []Partition{}
	if f == nil {
		return out
	}
	for at, w := range m.written {
		if _, ours := f.Topics[at.topic]; ours {
			out = append(out, Partition{at.topic, at.p, w.records, w.last})
		}
	}
	slices.SortFunc(out, func(a, b Partition) int {
		return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
	})
	return out[:min(len(out), mostPartitions)]
}
