package bridge

import (
	"context"
	"errors"

	"github.com/twmb/franz-go/pkg/kadm"

	"blobfeed/envelope"
	"blobfeed/internal/topicname"
	"blobfeed/internal/topics"
	"blobfeed/offsets"
)

// discard ends what the brokers left open of the lease's last transaction, if there is such a thing (I1, I2): its
// cursor does not count, so its records are delivered again, and must not become visible by the end of a transaction
// of ours. In partitions where the brokers did write the end they are doubled; nothing is lost.
func (sh *shared) discard(ctx context.Context, lease *offsets.Lease) error {
	known, ok := lease.State().Torn(lease.Partition)
	if !ok {
		return nil
	}
	sh.opts.Log.Warn("the brokers did not complete a commit that they acknowledged; delivering its records again",
		"lease", lease.Partition, "effect", "some records may be doubled")
	ends := map[string]int32{}
	for topic, partitions := range known {
		ends[topic] = partitions
		if sh.opts.Markers == envelope.MarkersTopic {
			ends[topicname.Markers(topic)] = partitions
		}
	}
	if sh.opts.DeadLetter != "" {
		ends[sh.opts.DeadLetter] = 1 // where dead letters go
	}
	for topic, partitions := range ends {
		counts, err := topics.Count(ctx, kadm.NewClient(sh.client), topic)
		var gone *topics.MissingError // deleted after a reset
		if err != nil && !errors.As(err, &gone) {
			return err
		}
		ends[topic] = min(partitions, counts[topic])
	}
	return lease.Discard(ctx, ends)
}
