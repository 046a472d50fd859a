package topics

import (
	"context"
	"fmt"
	"slices"
	"strconv"

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
		t := listed[name]
		settings, err := Read(ctx, admin, name)
		if t.Err != nil || err != nil {
			continue
		}
		least, _ := strconv.Atoi(settings[name][minInSync]) // 0: it is not known
		for _, p := range t.Partitions.Sorted() {
			why, do := "", "start the missing brokers, or lower the setting"
			switch {
			case p.Leader < 0:
				why, do = "has no leader", "start its brokers"
			case len(p.ISR) < least && (stuck || len(p.ISR) < len(p.Replicas)):
				why = fmt.Sprintf("has %s in sync, and %s is %d", plain.Count(len(p.ISR), "replica"), minInSync, least)
			default:
				continue
			}
			return remedy.With(fmt.Errorf("topic %s takes no records: partition %d %s", name, p.Partition, why), do)
		}
	}
	return nil
}
