package bridge

import (
	"context"
	"maps"

	"blobfeed/internal/topics"
	"blobfeed/offsets"
)

// admit decides about a topic that the frontier and the cursor do not know. A client that may create containers chooses
// these names, and how many there are.
func (b *basis) admit(ctx context.Context, topic string) error {
	if b.h.opts.constant() != nil {
		return nil
	}
	s, _, err := b.h.shared.view.Get()
	if err != nil {
		return err
	}
	pins := b.allPins(s)
	if _, ok := pins[topic]; ok {
		return nil // another lease was here before
	}
	pins[topic] = offsets.Pin{Partitions: b.h.opts.TopicPartitions}
	f := *b.frontier
	f.Adopt(pins)
	count := len(f.Topics)
	if err := b.h.shared.topics.WithinLimit(topic, count); err != nil {
		return err
	}
	most, err := b.h.shared.stateLimit(ctx)
	if err != nil {
		return err
	}
	if most != b.h.stateLimit {
		return errLimitChanged
	}
	if err := topics.FitsState(topic, b.h.opts.offsetsTopic(), count, f.Size(pins), most); err != nil {
		return err
	}
	foreign, err := b.foreign(ctx, topic)
	if err != nil {
		return err
	}
	if foreign {
		return topics.Foreign(topic)
	}
	if near, do := b.h.shared.topics.NearLimit(count); near {
		b.h.opts.Log.Warn("the number of topics is near its limit", "topics", count, "limit", b.h.opts.TopicLimit,
			"hint", do)
	}
	return nil
}

// foreign reports whether a topic holds records that this bridge did not write. With a literal prefix the operator has
// said which topics are the bridge's. Without transactions, records of an owner that crashed before its first cursor
// look like somebody else's, too: the operator decides.
func (b *basis) foreign(ctx context.Context, topic string) (bool, error) {
	if b.h.opts.AdoptTopics || b.h.opts.Topics.Prefixed() {
		return false, nil
	}
	if used, err := b.h.shared.topics.Used(ctx, topic, b.h.opts.Client); !used || err != nil {
		return false, err
	}
	// Another instance may have found the topic, and committed its first records, since the view was read.
	ends, err := b.h.shared.topics.Ends(ctx, b.h.opts.offsetsTopic())
	if err != nil {
		return false, err
	}
	s, err := b.h.shared.view.Await(ctx, func(s *offsets.State) bool { return s.Reached(ends) })
	if err != nil {
		return false, err
	}
	if _, ok := b.allPins(s)[topic]; ok {
		return false, nil
	}
	return s.Frontier == nil || s.Frontier.Topics[topic] == 0, nil
}

// allPins returns the pins of all topics that leases have found: of other instances those that are committed, of this
// one also those that are not.
func (b *basis) allPins(s *offsets.State) map[string]offsets.Pin {
	pins := map[string]offsets.Pin{}
	for topic := range b.h.shared.opened.Range {
		pins[topic.(string)] = offsets.Pin{Partitions: b.h.opts.TopicPartitions}
	}
	for _, c := range s.Cursors {
		if c != nil {
			maps.Copy(pins, c.Pins)
		}
	}
	maps.Copy(pins, b.topics.pinned())
	return pins
}
