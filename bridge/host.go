package bridge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"blobfeed/bridge/pipeline"
	"blobfeed/internal/topics"
	"blobfeed/offsets"
	"blobfeed/source"
)

// Topic returns where the records of a topic go. A topic that is new is created, if it may, before its first record.
func (b *basis) Topic(ctx context.Context, name string) (*pipeline.Topic, error) {
	topic, pin, pinned := b.topics.lookUp(name)
	if topic != nil {
		return topic, nil
	}
	partitions, known := b.frontier.Topics[name]
	if !known && !pinned {
		var err error
		partitions, err = b.openNewTopic(ctx, name)
		var rejected *topics.RejectedError
		if errors.As(err, &rejected) {
			topic = &pipeline.Topic{Name: name, Rejected: err}
			if b.h.opts.DeadLetter != "" {
				b.topics.keep(topic) // else each of its events would ask the brokers
			}
			return topic, nil
		}
		if err != nil {
			return nil, err
		}
		if pin, pinned, err = b.pinOfOthers(name); err != nil {
			return nil, err
		}
	}
	enc, err := b.h.shared.encoders.get(ctx, name)
	if err != nil {
		return nil, &pipeline.EncoderError{Err: err}
	}
	if !pinned {
		pin = offsets.Pin{Partitions: partitions, KeySchema: cmp.Or(b.frontier.KeySchemas[name], enc.KeyID())}
	}
	if pin.KeySchema != enc.KeyID() { // I5: the id is in the key's bytes, by which its partition is chosen
		return nil, &SettingsError{Problem: fmt.Sprintf("the registry gives schema %d for the keys of topic %s, "+
			"which were written with schema %d: with another one, keys would move to other partitions. Restore the "+
			"registry, or restart from scratch with another BRIDGE_NAME and BRIDGE_TOPIC",
			enc.KeyID(), name, pin.KeySchema)}
	}
	return b.topics.keep(&pipeline.Topic{
		Name: name, Encoder: enc, Partitions: pin.Partitions,
		New: !known || b.frontier.KeySchemas[name] != pin.KeySchema,
	}), nil
}

// pinOfOthers returns the pin of a new topic that another lease has found, if its cursor is in the view. A scan writes
// the rows of a container with one lease, and others deliver its events: a key must have one partition (I5).
func (b *basis) pinOfOthers(name string) (pin offsets.Pin, pinned bool, err error) {
	s, _, err := b.h.shared.view.Get()
	if err != nil {
		return pin, false, err
	}
	for _, c := range s.Cursors {
		if c == nil {
			continue
		}
		if pin, pinned = c.Pins[name]; pinned {
			break
		}
	}
	return pin, pinned, nil
}

// Known reports whether a topic is there: it is open, pinned, or in the frontier.
func (b *basis) Known(name string) bool {
	topic, _, pinned := b.topics.lookUp(name)
	_, known := b.frontier.Topics[name]
	return topic != nil || pinned || known
}

// Prepare creates the topics of a block that are new. They are admitted in the order of their events, and created with
// one request: one after another, those of a thousand containers take minutes. An error is not lost, since Topic meets
// it again.
func (b *basis) Prepare(ctx context.Context, names []string) {
	names = slices.DeleteFunc(names, b.Known)
	if len(names) == 0 || b.h.shared.creating.take(ctx) != nil { // other leases may want the same ones
		return
	}
	defer b.h.shared.creating.leave()
	var missing []string
	for _, name := range names {
		if b.admitted(name) {
			continue
		}
		err := b.admit(ctx, name)
		var rejected *topics.RejectedError
		switch {
		case err == nil:
			missing = append(missing, name)
		case !errors.As(err, &rejected):
			return
		}
	}
	if len(missing) < 2 {
		return
	}
	if n, err := b.h.shared.topics.Prepare(ctx, missing); err == nil && n > 0 {
		total := 0
		for name := range b.h.shared.admitted.Range {
			if b.admitted(name.(string)) {
				total++
			}
		}
		b.h.opts.Log.Info("topics created", "topics", n, "since_start", total, "limit", b.h.opts.TopicLimit)
	}
}

// openNewTopic makes sure that a topic that the frontier and the cursor do not know may be written to, and exists.
func (b *basis) openNewTopic(ctx context.Context, name string) (partitions int32, err error) {
	if err := b.h.shared.creating.take(ctx); err != nil { // two leases may want the last topic of the limit
		return 0, err
	}
	err = b.admit(ctx, name)
	b.h.shared.creating.leave()
	if err != nil {
		return 0, err
	}
	o, err := b.h.shared.openings.get(ctx, name)
	if err != nil {
		return 0, err
	}
	b.h.shared.opened.Store(name, true)
	if o.limit < b.h.limit { // it may be raised since: else the hold would begin again and again
		o.limit, err = b.h.shared.topics.MaxMessage(ctx, name)
	}
	if err == nil && o.limit < b.h.limit { // the other topics are within the limit of this hold
		err = errLimitChanged
	}
	return o.partitions, err
}

// Retry is retry, for the goroutines of shards.
func (b *basis) Retry(ctx context.Context, f func(context.Context) error) error {
	return b.h.retry(ctx, f)
}

// TooLarge returns errLimitChanged in place of err if the topics take larger records by now.
func (b *basis) TooLarge(ctx context.Context, err error) error {
	if limit, lerr := b.h.shared.messageLimit(ctx); lerr == nil && limit != b.h.limit {
		return errLimitChanged
	}
	return err
}

// Lost returns the loss of a chunk that was to be read.
func (b *basis) Lost(ctx context.Context, seg source.Segment, chunk string) error {
	oldest, _, err := b.h.shared.history.segmentAfter(ctx, source.Segment{})
	if err != nil {
		return err
	}
	return &GapError{At: seg, Chunk: chunk, Oldest: oldest}
}

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
	if b.found(s, topic) {
		return nil // another lease was here before
	}
	pins := b.allPins(s)
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
	if err := b.rejectForeign(ctx, topic); err != nil {
		return err
	}
	if near, do := b.h.shared.topics.NearLimit(count); near {
		b.h.opts.Log.Warn("the number of topics is near its limit", "topics", count, "limit", b.h.opts.TopicLimit,
			"hint", do)
	}
	b.h.shared.admitted.Store(topic, b.frontier.Born)
	return nil
}

// admitted reports whether this instance has admitted a topic since the last reset.
func (b *basis) admitted(topic string) bool {
	born, ok := b.h.shared.admitted.Load(topic)
	return ok && born == b.frontier.Born
}

// rejectForeign rejects a topic that holds records which this bridge did not write. With a literal prefix the operator
// has said which topics are the bridge's, unless they are another bridge's. Without transactions, records of an owner
// that crashed before its first cursor look like somebody else's, too: the operator decides.
func (b *basis) rejectForeign(ctx context.Context, topic string) error {
	sh := b.h.shared
	if used, err := sh.rivals.used(ctx, topic); !used || err != nil {
		return err
	}
	// Another instance may have found the topic, and committed its first records, since the view was read.
	ends, err := sh.topics.Ends(ctx, b.h.opts.offsetsTopic())
	if err != nil {
		return err
	}
	s, err := sh.view.Await(ctx, func(s *offsets.State) bool { return s.Reached(ends) })
	if err != nil {
		return err
	}
	if b.found(s, topic) || s.Frontier != nil && s.Frontier.Topics[topic] > 0 {
		return nil
	}
	claims, err := sh.rivals.readClaims(ctx, claimsAge)
	if err == nil {
		err = b.h.opts.Sole([]string{topic}, claims)
	}
	if err != nil {
		return err
	}
	if b.h.opts.AdoptTopics || b.h.opts.Topics.Prefixed() {
		return nil
	}
	return topics.Foreign(topic)
}

// found reports whether a topic is one of allPins.
func (b *basis) found(s *offsets.State, topic string) bool {
	return b.admitted(topic) || b.topics.writes(topic) || slices.ContainsFunc(s.Cursors, func(c *offsets.Cursor) bool {
		return c != nil && c.Pins[topic].Partitions > 0
	})
}

// allPins returns the pins of all topics that leases have found: of other instances those that are committed, of this
// one also those that are not.
func (b *basis) allPins(s *offsets.State) map[string]offsets.Pin {
	pins := map[string]offsets.Pin{}
	for topic, born := range b.h.shared.admitted.Range {
		if born == b.frontier.Born {
			pins[topic.(string)] = offsets.Pin{Partitions: b.h.opts.TopicPartitions}
		}
	}
	for _, c := range s.Cursors {
		if c != nil {
			maps.Copy(pins, c.Pins)
		}
	}
	maps.Copy(pins, b.topics.pinned())
	return pins
}
