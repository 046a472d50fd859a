package bridge

import (
	"blobfeed/envelope"
	"blobfeed/internal/topicname"
)

// discard ends what the brokers left open of the lease's last transaction, if there is such a thing (I1, I2): its
// cursor does not count, so its records are delivered again, and must not become visible by the end of a transaction
// of ours. In partitions where the brokers did write the end they are doubled; nothing is lost.
func (h *hold) discard() error {
	known, ok := h.lease.State().Torn(h.p)
	if !ok {
		return nil
	}
	h.opts.Log.Warn("the brokers did not complete a commit that they acknowledged; delivering its records again",
		"lease", h.p, "effect", "some records may be doubled")
	topics := map[string]int32{}
	for topic, partitions := range known {
		topics[topic] = partitions
		if h.opts.Markers == envelope.MarkersTopic {
			topics[topicname.Markers(topic)] = partitions
		}
	}
	if h.opts.DeadLetter != "" {
		topics[h.opts.DeadLetter] = 1 // where dead letters go
	}
	return h.lease.Discard(h.held, topics)
}
