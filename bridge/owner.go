package bridge

import (
	"fmt"
	"slices"
	"strings"

	"blobfeed/envelope"
	"blobfeed/internal/topicname"
	"blobfeed/offsets"
)

// Sole rejects topics that another bridge writes to. Two bridges on one topic break what each promises of it: the
// markers of one speak for the other's records, and with one feed every event comes twice.
func (o *Options) Sole(topics []string, claims []offsets.Claim) error {
	for _, c := range claims {
		for _, own := range []string{topicname.State(c.Name), topicname.DeadLetters(c.Name)} {
			if slices.Contains(topics, own) {
				return &SettingsError{Problem: fmt.Sprintf("topic %s is the state or the dead letters of bridge %s: "+
					"set another BRIDGE_TOPIC", own, c.Name)}
			}
		}
		topic, taken := o.shares(topics, &c)
		if !taken || o.Shared && c.Feed != o.FeedID {
			continue
		}
		why := "To bring several accounts into one topic, set BRIDGE_TOPIC_SHARED=true for each of their bridges " +
			"(docs/operations.md#one-topic-for-several-accounts says what still holds)"
		if c.Feed == o.FeedID {
			why = "Both read the same feed, so every event would come twice"
		}
		return &SettingsError{Problem: fmt.Sprintf("topic %s belongs to bridge %s, which reads feed %s and has its "+
			"state in topic %s.offsets: set another BRIDGE_TOPIC. %s. "+
			"If %[2]s is retired, run bridge reset --yes with BRIDGE_NAME=%[2]s",
			topic, c.Name, c.Feed, c.Name, why)}
	}
	return nil
}

// shares returns a topic that the bridge of c writes to as well.
func (o *Options) shares(topics []string, c *offsets.Claim) (string, bool) {
	theirs := map[string]bool{}
	add := func(topic string) {
		theirs[topic] = true
		if c.Settings["BRIDGE_RESOLVED_TO"] == envelope.MarkersTopic.String() {
			theirs[topicname.Markers(topic)] = true
		}
	}
	for _, topic := range c.Topics {
		add(topic)
	}
	template := c.Settings["BRIDGE_TOPIC"]
	if template != "" && !strings.Contains(template, "{") {
		add(envelope.KafkaName(template)) // it had no record yet
	}
	for _, topic := range topics {
		if theirs[topic] || o.Markers == envelope.MarkersTopic && theirs[topicname.Markers(topic)] {
			return topic, true
		}
	}
	// The same template for the same feed gives the same topics. Others may never meet: rivals.rejectTaken looks at each
	// topic.
	return template, strings.Contains(template, "{") && template == o.Frozen["BRIDGE_TOPIC"] && c.Feed == o.FeedID
}
