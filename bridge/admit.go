package bridge

import (
	"context"
	"errors"
	"maps"

	"blobfeed/internal/topics"
	"blobfeed/offsets"
)

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
	var rejected *topics.RejectedError
	if w.DeadLetter != "" && errors.As(err, &rejected) {
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
	if err := w.topics.WithinLimit(topic, count); err != nil {
		return err
	}
	most, err := w.stateLimit(ctx)
	if err != nil {
		return err
	}
	if most != w.most {
		return errLimitChanged
	}
	if err := topics.FitsState(topic, w.offsetsTopic(), count, f.Size(pins), most); err != nil {
		return err
	}
	foreign, err := w.foreign(ctx, topic)
	if err != nil {
		return err
	}
	if foreign {
		return topics.Foreign(topic)
	}
	if near, do := w.topics.NearLimit(count); near {
		w.Log.Warn("the number of topics is near its limit", "topics", count, "limit", w.TopicLimit, "hint", do)
	}
	return nil
}

// foreign reports whether a topic holds records that this bridge did not write. With a literal prefix the operator has
// said which topics are the bridge's. Without transactions, records of an owner that crashed before its first cursor
// look like somebody else's, too: the operator decides.
func (w *worker) foreign(ctx context.Context, topic string) (bool, error) {
	if w.AdoptTopics || w.Topics.Prefixed() {
		return false, nil
	}
	if used, err := w.topics.Used(ctx, topic, w.Client); !used || err != nil {
		return false, err
	}
	// Another instance may have found the topic, and committed its first records, since the view was read.
	ends, err := w.topics.Ends(ctx, w.offsetsTopic())
	if err != nil {
		return false, err
	}
	s, err := w.view.Await(ctx, func(s *offsets.State) bool { return s.Reached(ends) })
	if err != nil {
		return false, err
	}
	if _, ok := w.pinned(s)[topic]; ok {
		return false, nil
	}
	return s.Frontier == nil || s.Frontier.Topics[topic] == 0, nil
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
