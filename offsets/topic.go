package offsets

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kadm"

	"blobfeed/internal/topics"
)

// settings of the topic.
var settings = map[string]string{
	"cleanup.policy": "compact",
	// A new instance reads the topic from its start. Small segments and eager compaction keep that short:
	// a commit a second writes some 25 MB a day and partition.
	"segment.bytes":             "16777216",
	"min.cleanable.dirty.ratio": "0.1",
}

// untransacted are further settings without transactions: what a paused owner wrote late has to stay readable
// until the keeper of the frontier has repaired what stands behind it.
var untransacted = map[string]string{"min.compaction.lag.ms": "86400000"}

// Settings returns what a new offsets topic gets.
func Settings(transactional bool) map[string]*string {
	values := map[string]*string{}
	for name, value := range settings {
		values[name] = &value
	}
	if !transactional {
		for name, value := range untransacted {
			values[name] = &value
		}
	}
	return values
}

// MissingError says that there is no offsets topic, and how to create it.
type MissingError struct {
	Topic      string
	Partitions int32
}

func (e *MissingError) Error() string {
	return fmt.Sprintf("the offsets topic %s does not exist: %s", e.Topic, e.Advice())
}

// Advice says what to do about it.
func (e *MissingError) Advice() string {
	text := fmt.Sprintf("set BRIDGE_TOPIC_CREATE=explicit, or create it with a partition for each lease "+
		"(BRIDGE_OFFSETS_LEASES): kafka-topics.sh --create --topic %s --partitions %d", e.Topic, e.Partitions)
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		text += " --config " + name + "=" + settings[name]
	}
	return text
}

// Ensure returns the number of partitions of the offsets topic, which is the number of leases and never changes. If the
// topic is missing it is created, or, without create, a MissingError. Created says that this call created it: then
// there is nothing in it. Replication -1 is the broker's default.
func Ensure(
	ctx context.Context, adm *kadm.Client, topic string, partitions int32, replication int16,
	create, transactional bool,
) (leases int, created bool, err error) {
	if !create {
		counts, err := topics.Count(ctx, adm, topic)
		var gone *topics.MissingError
		if errors.As(err, &gone) {
			return 0, false, &MissingError{topic, partitions}
		}
		if err != nil {
			return 0, false, err
		}
		return int(counts[topic]), false, topics.KeepsState(ctx, adm, topic)
	}
	have, created, err := topics.Create(ctx, adm, topic, partitions, replication, Settings(transactional))
	if err == nil && !created { // one that was just created is not known to all brokers yet
		err = topics.KeepsState(ctx, adm, topic)
	}
	return int(have), created, err
}
