package offsets

import (
	"cmp"
	"hash/fnv"
	"maps"
	"slices"
)

// Lane is a partition of a topic of records.
type Lane struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
}

// Within is a place in a lane. What is below the offset is dealt with.
type Within struct {
	Lane
	To int64 `json:"to"`
}

// Compare orders lanes.
func (l Lane) Compare(o Lane) int {
	return cmp.Or(cmp.Compare(l.Topic, o.Topic), cmp.Compare(l.Partition, o.Partition))
}

// LeaseOf returns, of that many leases, the one that lists a container and sweeps the first partition of a topic.
func LeaseOf(name string, leases int) int32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name))
	return int32(h.Sum32() % uint32(leases))
}

// Unjudged returns the partitions that the sweep of a lease has yet to compare with the account, in their order. A
// partition that is new among the judged ones is left out, since it has no records of before the scan.
func (l *Listing) Unjudged(topics map[string]int32, lease int32, leases int) (lanes []Lane) {
	for _, topic := range slices.Sorted(maps.Keys(topics)) {
		for p := range topics[topic] {
			mine := (int64(LeaseOf(topic, leases))+int64(p))%int64(leases) == int64(lease)
			lane := Lane{Topic: topic, Partition: p}
			if mine && (l.Judged == nil || lane.Compare(*l.Judged) > 0) {
				lanes = append(lanes, lane)
			}
		}
	}
	return lanes
}
