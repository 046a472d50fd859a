package topics

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/twmb/franz-go/pkg/kadm"

	"blobfeed/internal/plain"
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
	short := func(p kadm.PartitionDetail) bool {
		return p.Leader >= 0 && (stuck || len(p.ISR) < len(p.Replicas))
	}
	var suspects []string
	for name, t := range listed {
		if slices.ContainsFunc(t.Partitions.Sorted(), short) {
			suspects = append(suspects, name)
		}
	}
	least := minInSyncOf(ctx, admin, suspects)
	for _, name := range slices.Sorted(slices.Values(names)) {
		if listed[name].Err != nil {
			continue
		}
		for _, p := range listed[name].Partitions.Sorted() {
			why, do := "", "start the missing brokers, or lower the setting"
			switch in := len(p.ISR); {
			case p.Leader < 0:
				why, do = "has no leader", "start its brokers"
			case short(p) && in < least[name]:
				why = fmt.Sprintf("has %s in sync, and %s is %d", plain.Count(in, "replica"), minInSync, least[name])
			default:
				continue
			}
			err := fmt.Errorf("topic %s takes no records: partition %d %s", name, p.Partition, why)
			return plain.WithRemedy(err, do)
		}
	}
	return nil
}

// minInSyncOf returns how many replicas of each topic must be in sync, as far as the brokers say. It asks once for all
// topics, of which a bridge may have hundreds.
func minInSyncOf(ctx context.Context, admin *kadm.Client, names []string) map[string]int {
	configs, err := admin.DescribeTopicConfigs(ctx, names...)
	if err != nil {
		return nil
	}
	least := map[string]int{}
	for _, rc := range configs {
		least[rc.Name], _ = strconv.Atoi(SettingsOf(rc)[minInSync])
	}
	return least
}
