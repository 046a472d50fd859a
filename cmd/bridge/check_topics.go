package main

import (
	"fmt"

	"blobfeed/envelope"
	"blobfeed/internal/check"
	"blobfeed/internal/config"
	"blobfeed/offsets"
)

// checkTemplate looks at how many topics there are, and returns how large the state is by them, and may become.
func checkTemplate(c *config.Config, record envelope.Options, topics *envelope.Topics, f *offsets.Frontier,
	found *check.Findings) (largest, grows int) {
	if f != nil {
		largest = f.Size(nil)
	} else {
		f = &offsets.Frontier{}
	}
	status, do := check.OK, ""
	if 5*len(f.Topics) >= 4*c.TopicLimit {
		status, do = check.Warning, "raise BRIDGE_TOPIC_LIMIT, or leave containers out with BRIDGE_CONTAINERS"
	}
	used := fmt.Sprintf("%d of %d topics are in use (BRIDGE_TOPIC_LIMIT)", len(f.Topics), c.TopicLimit)
	found.Add("topics", status, used, do)
	if c.TopicAdopt && !topics.Prefixed() {
		found.Add("topics", check.Warning, "a client that may create containers can have records written "+
			"to any topic that these credentials may write to",
			"begin BRIDGE_TOPIC with a literal text, or unset BRIDGE_TOPIC_ADOPT")
	}
	pin := offsets.Pin{Partitions: c.TopicPartitions}
	if record.KeyFormat == envelope.KeyAvro {
		pin.KeySchema = 1_000_000
	}
	pins := map[string]offsets.Pin{}
	for i := len(f.Topics); i < c.TopicLimit; i++ {
		pins[fmt.Sprintf("%0*d", longestTopic(c), i)] = pin
	}
	return largest, f.Size(pins)
}
