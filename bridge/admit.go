package bridge

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"blobfeed/offsets"
)

// RefusedTopicError is a topic that the template makes of a container, and that gets no records. The container is at
// fault, not the event, but what becomes of the event is the same: ON_ERROR says it.
type RefusedTopicError struct{ Topic, Problem string }

func (e *RefusedTopicError) Error() string { return fmt.Sprintf("topic %s: %s", e.Topic, e.Problem) }

// admit decides about a topic that the frontier and the cursor do not know. A client that may create containers
// chooses these names, and how many there are.
func (w *worker) admit(ctx context.Context, topic string) error {
	if _, one := w.Topics.Constant(); one {
		return nil
	}
	if err := w.outlets.refusal(topic); err != nil {
		return err
	}
	err := w.judge(ctx, topic)
	var refused *RefusedTopicError
	if w.DeadLetter != "" && errors.As(err, &refused) {
		w.outlets.refuse(topic, err) // else each of its events would ask the brokers
	}
	return err
}

func (w *worker) judge(ctx context.Context, topic string) error {
	s, _, err := w.view.Get()
	if err != nil {
		return err
	}
	pins := w.pinned(s)
	if _, ok := pins[topic]; ok {
		return nil // another lease was here before
	}
	pins[topic] = offsets.Pin{Partitions: w.TopicPartitions}
	f := *w.frontier
	f.Adopt(pins)
	count := len(f.Topics)
	if w.TopicLimit > 0 && count > w.TopicLimit {
		return &RefusedTopicError{topic, fmt.Sprintf("BRIDGE_TOPIC makes more topics than BRIDGE_TOPIC_LIMIT=%d: "+
			"raise the limit, or leave containers out with BRIDGE_CONTAINERS",
			w.TopicLimit)}
	}
	most, err := w.stateLimit(ctx)
	if err != nil {
		return err
	}
	if most != w.most {
		return errLimitChanged
	}
	// Half is for the rest of the documents, and for what other instances admit before this one sees it.
	if size := f.Size(pins); 2*size > int(most) {
		return &RefusedTopicError{topic, fmt.Sprintf("the state of %d topics takes %d bytes, more than half of the %d "+
			"of max.message.bytes of topic %s: raise that, or use another BRIDGE_NAME for some of the containers",
			count, size, most, w.offsetsTopic())}
	}
	if err := w.foreign(ctx, topic); err != nil {
		return err
	}
	if w.TopicLimit > 0 && 5*count >= 4*w.TopicLimit {
		w.Log.Warn("the number of topics is near its limit", "topics", count, "limit", w.TopicLimit,
			"hint", "raise BRIDGE_TOPIC_LIMIT, or leave containers out with BRIDGE_CONTAINERS")
	}
	return nil
}

// pinned returns the pins of all topics that leases have found: of other instances those that are committed, of this
// one also those that are not.
func (w *worker) pinned(s *offsets.State) map[string]offsets.Pin {
	pins := map[string]offsets.Pin{}
	w.mu.Lock()
	for topic := range w.met {
		pins[topic] = offsets.Pin{Partitions: w.TopicPartitions}
	}
	w.mu.Unlock()
	for _, c := range s.Cursors {
		if c != nil {
			maps.Copy(pins, c.Pins)
		}
	}
	maps.Copy(pins, w.outlets.opened())
	return pins
}
