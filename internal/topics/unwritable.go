package topics

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"github.com/twmb/franz-go/pkg/kadm"

	"blobfeed/internal/plain"
	"blobfeed/internal/remedy"
)

// Unwritable returns an error that names a partition to which the brokers write nothing now, because it has no leader,
// or fewer replicas in sync than they must have. With stuck, it counts also if it has no more replicas at all: from
// Kafka 4.0 on, all of them are enough. It returns nil if there is none, or if the brokers do not say: clients may be
// permitted to write and not to read the settings.
func Unwritable(ctx context.Context, admin *kadm.Client, stuck bool, names ...string) error {
	listed, err := admin.ListTopics(ctx, names...)
	if err != nil {
		return nil // which shows elsewhere
	}
	for _, name := range slices.Sorted(slices.Values(names)) {
		if listed[name].Err != nil {
			continue
		}
		least := sync.OnceValue(func() int { return minInSyncOf(ctx, admin, name) }) // asked for in trouble only
		for _, p := range listed[name].Partitions.Sorted() {
			why, do := "", "start the missing brokers, or lower the setting"
			switch in := len(p.ISR); {
			case p.Leader < 0:
				why, do = "has no leader", "start its brokers"
			case (stuck || in < len(p.Replicas)) && in < least():
				why = fmt.Sprintf("has %s in sync, and %s is %d", plain.Count(in, "replica"), minInSync, least())
			default:
				continue
			}
			return remedy.With(fmt.Errorf("topic %s takes no records: partition %d %s", name, p.Partition, why), do)
		}
	}
	return nil
}

// minInSyncOf returns how many replicas of a topic must be in sync, 0 if the brokers do not say.
func minInSyncOf(ctx context.Context, admin *kadm.Client, name string) int {
	settings, err := Read(ctx, admin, name)
	if err != nil {
		return 0
	}
	least, _ := strconv.Atoi(settings[name][minInSync])
	return least
}
