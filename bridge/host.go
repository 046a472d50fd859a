package bridge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"blobfeed/bridge/pipeline"
	"blobfeed/internal/history"
	"blobfeed/internal/topics"
	"blobfeed/offsets"
	"blobfeed/source"
)

// Topic returns where the records of a topic go. A topic that is new is created, if it may, before its first record.
func (e *epochView) Topic(ctx context.Context, name string) (*pipeline.Topic, error) {
	topic, pin, pinned := e.open.lookUp(name)
	if topic != nil {
		return topic, nil
	}
	partitions, known := e.frontier.Topics[name]
	if !known && !pinned {
		var err error
		partitions, err = e.openNewTopic(ctx, name)
		var rejected *topics.RejectedError
		if errors.As(err, &rejected) {
			topic = &pipeline.Topic{Name: name, Rejected: err}
			if e.t.opts.DeadLetter != "" {
				e.open.keep(topic) // else each of its events would ask the brokers
			}
			return topic, nil
		}
		if err != nil {
			return nil, err
		}
		if pin, pinned, err = e.pinOfOthers(name); err != nil {
			return nil, err
		}
	}
	enc, err := e.t.instance.encoders.get(ctx, name)
	if err != nil {
		return nil, &pipeline.EncoderError{Err: err}
	}
	if !pinned {
		pin = offsets.Pin{Partitions: partitions, KeySchema: cmp.Or(e.frontier.KeySchemas[name], enc.KeyID())}
	}
	if pin.KeySchema != enc.KeyID() { // I5: the id is in the key's bytes, by which its partition is chosen
		return nil, &SettingsError{Problem: fmt.Sprintf("the registry gives schema %d for the keys of topic %s, "+
			"which were written with schema %d: with another one, keys would move to other partitions. Restore the "+
			"registry, or restart from scratch with another BRIDGE_NAME and BRIDGE_TOPIC",
			enc.KeyID(), name, pin.KeySchema)}
	}
	return e.open.keep(&pipeline.Topic{
		Name: name, Encoder: enc, Partitions: pin.Partitions,
		New: !known || e.frontier.KeySchemas[name] != pin.KeySchema,
	}), nil
}

// pinOfOthers returns the pin of a new topic that another lease has found, if its cursor is in the view. A scan writes
// the rows of a container with one lease, and others deliver its events: a key must have one partition (I5).
func (e *epochView) pinOfOthers(name string) (pin offsets.Pin, pinned bool, err error) {
	s, _, err := e.t.instance.view.Get()
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
func (e *epochView) Known(name string) bool {
	topic, _, pinned := e.open.lookUp(name)
	_, known := e.frontier.Topics[name]
	return topic != nil || pinned || known
}

// Prepare creates the topics of a block that are new. They are admitted in the order of their events, and created with
// one request: one after another, those of a thousand containers take minutes. An error is not lost, since Topic meets
// it again.
func (e *epochView) Prepare(ctx context.Context, names []string) {
	names = slices.DeleteFunc(names, e.Known)
	if len(names) == 0 || e.t.instance.creating.Take(ctx) != nil { // other leases may want the same ones
		return
	}
	defer e.t.instance.creating.Leave()
	var missing []string
	for _, name := range names {
		if e.admitted(name) {
			continue
		}
		err := e.admit(ctx, name)
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
	if n, err := e.t.instance.topics.Prepare(ctx, missing); err == nil && n > 0 {
		total := 0
		for name := range e.t.instance.admitted.Range {
			if e.admitted(name.(string)) {
				total++
			}
		}
		e.t.opts.Log.Info("topics created", "topics", n, "since_start", total, "limit", e.t.opts.TopicLimit)
	}
}

// openNewTopic makes sure that a topic that the frontier and the cursor do not know may be written to, and exists.
func (e *epochView) openNewTopic(ctx context.Context, name string) (partitions int32, err error) {
	if err := e.t.instance.creating.Take(ctx); err != nil { // two leases may want the last topic of the limit
		return 0, err
	}
	err = e.admit(ctx, name)
	e.t.instance.creating.Leave()
	if err != nil {
		return 0, err
	}
	o, err := e.t.instance.openings.get(ctx, name)
	if err != nil {
		return 0, err
	}
	e.t.instance.opened.Store(name, true)
	if o.limit < e.t.limit { // it may be raised since: else the tenure would begin again and again
		o.limit, err = e.t.instance.topics.MaxMessage(ctx, name)
	}
	if err == nil && o.limit < e.t.limit { // the other topics are within the limit of this tenure
		err = errLimitChanged
	}
	return o.partitions, err
}

// Retry is retry, for the goroutines of shards.
func (e *epochView) Retry(ctx context.Context, f func(context.Context) error) error {
	return e.t.retry(ctx, f)
}

// TooLarge returns errLimitChanged in place of err if the topics take larger records by now.
func (e *epochView) TooLarge(ctx context.Context, err error) error {
	if limit, lerr := e.t.instance.messageLimit(ctx); lerr == nil && limit != e.t.limit {
		return errLimitChanged
	}
	return err
}

// Lost returns the loss of a chunk that was to be read.
func (e *epochView) Lost(ctx context.Context, seg source.Segment, chunk string) error {
	oldest, _, err := e.t.instance.history.Next(ctx, source.Segment{})
	if err != nil {
		return err
	}
	return &history.GapError{At: seg, Chunk: chunk, Oldest: oldest}
}

// admit decides about a topic that the frontier and the cursor do not know. A client that may create containers chooses
// these names, and how many there are.
func (e *epochView) admit(ctx context.Context, topic string) error {
	if e.t.opts.constant() != nil {
		return nil
	}
	s, _, err := e.t.instance.view.Get()
	if err != nil {
		return err
	}
	if e.found(s, topic) {
		return nil // another lease was here before
	}
	pins := e.allPins(s)
	pins[topic] = offsets.Pin{Partitions: e.t.opts.TopicPartitions}
	f := *e.frontier
	f.Adopt(pins)
	count := len(f.Topics)
	if err := e.t.instance.topics.WithinLimit(topic, count); err != nil {
		return err
	}
	most, err := e.t.instance.stateLimit(ctx)
	if err != nil {
		return err
	}
	if most != e.t.stateLimit {
		return errLimitChanged
	}
	if err := topics.FitsState(topic, e.t.opts.offsetsTopic(), count, f.Size(pins), most); err != nil {
		return err
	}
	if err := e.rejectForeign(ctx, topic); err != nil {
		return err
	}
	if near, do := e.t.instance.topics.NearLimit(count); near {
		e.t.opts.Log.Warn("the number of topics is near its limit", "topics", count, "limit", e.t.opts.TopicLimit,
			"hint", do)
	}
	e.t.instance.admitted.Store(topic, e.frontier.Born)
	return nil
}

// admitted reports whether this instance has admitted a topic since the last reset.
func (e *epochView) admitted(topic string) bool {
	born, ok := e.t.instance.admitted.Load(topic)
	return ok && born == e.frontier.Born
}

// rejectForeign rejects a topic that holds records which this bridge did not write. With a literal prefix the operator
// has said which topics are the bridge's, unless they are another bridge's. Without transactions, records of an owner
// that crashed before its first cursor look like somebody else's, too: the operator decides.
func (e *epochView) rejectForeign(ctx context.Context, topic string) error {
	inst := e.t.instance
	if used, err := inst.rivals.used(ctx, topic); !used || err != nil {
		return err
	}
	// Another instance may have found the topic, and committed its first records, since the view was read.
	ends, err := inst.topics.Ends(ctx, e.t.opts.offsetsTopic())
	if err != nil {
		return err
	}
	s, err := inst.view.Await(ctx, func(s *offsets.State) bool { return s.Reached(ends) })
	if err != nil {
		return err
	}
	if e.found(s, topic) || s.Frontier != nil && s.Frontier.Topics[topic] > 0 {
		return nil
	}
	claims, err := inst.rivals.readClaims(ctx, claimsAge)
	if err == nil {
		err = e.t.opts.Sole([]string{topic}, claims)
	}
	if err != nil {
		return err
	}
	if e.t.opts.AdoptTopics || e.t.opts.Topics.Prefixed() {
		return nil
	}
	return topics.Foreign(topic)
}

// found reports whether a topic is one of allPins.
func (e *epochView) found(s *offsets.State, topic string) bool {
	return e.admitted(topic) || e.open.writes(topic) || slices.ContainsFunc(s.Cursors, func(c *offsets.Cursor) bool {
		return c != nil && c.Pins[topic].Partitions > 0
	})
}

// allPins returns the pins of all topics that leases have found: of other instances those that are committed, of this
// one also those that are not.
func (e *epochView) allPins(s *offsets.State) map[string]offsets.Pin {
	pins := map[string]offsets.Pin{}
	for topic, born := range e.t.instance.admitted.Range {
		if born == e.frontier.Born {
			pins[topic.(string)] = offsets.Pin{Partitions: e.t.opts.TopicPartitions}
		}
	}
	for _, c := range s.Cursors {
		if c != nil {
			maps.Copy(pins, c.Pins)
		}
	}
	maps.Copy(pins, e.open.pinned())
	return pins
}
