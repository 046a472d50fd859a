package topics

import (
	"context"
	"fmt"
)

// RejectedError is a topic that the template makes of a container, and that gets no records. The container is at fault,
// not the event, but BRIDGE_ON_ERROR decides about both.
type RejectedError struct{ Topic, Problem string }

func (e *RejectedError) Error() string { return fmt.Sprintf("topic %s: %s", e.Topic, e.Problem) }

const moreTopics = "raise BRIDGE_TOPIC_LIMIT, or leave containers out with BRIDGE_CONTAINERS"

// NearLimit reports whether the topics of a template are close to their limit, and what to do about it.
func (p *Plan) NearLimit(count int) (near bool, do string) {
	return p.Limit > 0 && 5*count >= 4*p.Limit, moreTopics
}

// WithinLimit rejects a topic that would be one too many.
func (p *Plan) WithinLimit(topic string, count int) error {
	if p.Limit == 0 || count <= p.Limit {
		return nil
	}
	return &RejectedError{topic, fmt.Sprintf("BRIDGE_TOPIC makes more topics than BRIDGE_TOPIC_LIMIT=%d: %s",
		p.Limit, moreTopics)}
}

// FitsState rejects a topic with whose name the documents of the state would be too large. Half is for the rest of the
// documents, and for topics that other instances open before this one sees them.
func FitsState(topic, state string, count, size int, most int32) error {
	if 2*size <= int(most) {
		return nil
	}
	return &RejectedError{topic, fmt.Sprintf("the state of %d topics takes %d bytes, more than half of the %d "+
		"of max.message.bytes of topic %s: raise that, or use another BRIDGE_NAME for some of the containers",
		count, size, most, state)}
}

// MaxMessage returns the largest batch that all the topics take. The client makes no larger one, and rejects a record
// that is larger by itself, uncompressed, so no transaction fails for it.
func (a *Admin) MaxMessage(ctx context.Context, names ...string) (int32, error) {
	if len(names) == 0 {
		return defaultLimit, nil
	}
	all, err := Read(ctx, a.admin(), names...)
	if err != nil {
		return 0, err
	}
	limit := int32(maxRequest)
	for _, settings := range all {
		limit = min(limit, settings.MaxMessage())
	}
	return limit, nil
}
