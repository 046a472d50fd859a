package catalog

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"blobfeed/bridge/pipeline"
	"blobfeed/internal/plain"
	"blobfeed/internal/topics"
	"blobfeed/offsets"
)

// Topics are the topics that a lease writes to. If the frontier does not know a topic, because a container's first
// event made it, the cursor pins it in the transaction of the first record. When the segment is complete, the frontier
// takes the pin over, and the topic gets that marker. So a key keeps its partition until then, also over a crash (I5:
// in a segment, a blob has one shard, and so one lease), and no marker misses a topic that has records (I6).
type Topics struct {
	catalog           *Catalog          // immutable
	view              *offsets.View     // immutable
	limit, stateLimit int32             // immutable: bytes of a batch of records, of a document of the state
	frontier          *offsets.Frontier // of the last Renew, while no shard is read

	mu   sync.Mutex
	open map[string]*pipeline.Topic
	pins map[string]offsets.Pin // of the cursor
}

// ForLease returns the topics of a lease that is acquired now: its producer is made for the limits of now.
func (c *Catalog) ForLease(ctx context.Context, view *offsets.View) (t *Topics, err error) {
	t = &Topics{catalog: c, view: view}
	if t.limit, err = t.messageLimit(ctx); err == nil {
		t.stateLimit, err = c.stateLimit(ctx)
	}
	return t, err
}

// messageLimit returns how large a batch all topics take that are written to: the next producer must not be made for
// larger records than they take.
func (t *Topics) messageLimit(ctx context.Context) (int32, error) {
	var f *offsets.Frontier
	if s, _, err := t.view.Get(); err == nil {
		f = s.Frontier
	}
	return t.catalog.Admin.MaxMessage(ctx, t.catalog.Written(f)...)
}

// Limit returns how large a batch of records may be.
func (t *Topics) Limit() int32 { return t.limit }

// BatchLimit keeps a producer's batches within what their topics take.
func (t *Topics) BatchLimit(topic string) int32 {
	if topic == t.catalog.state() {
		return t.stateLimit
	}
	return t.limit
}

// TooLarge returns ErrLimitChanged in place of err if the topics take larger records by now.
func (t *Topics) TooLarge(ctx context.Context, err error) error {
	if limit, lerr := t.messageLimit(ctx); lerr == nil && limit != t.limit {
		return ErrLimitChanged
	}
	return err
}

// ErrLimitChanged is for a lease whose producer was made for another size of records.
var ErrLimitChanged = errors.New("the topics' max.message.bytes has changed")

// Renew forgets what belongs to another frontier or another tenure of the lease. Pins of the current segment stay until
// its marker (I5). Of the others, those that the frontier knows are of the past: the topic may have more partitions
// since. A topic that it does not know has rows of the scan that is under way.
func (t *Topics) Renew(c *offsets.Cursor, f *offsets.Frontier) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.frontier, t.open, t.pins = f, map[string]*pipeline.Topic{}, maps.Clone(c.Pins)
	if c.Segment != f.Current {
		maps.DeleteFunc(t.pins, func(topic string, _ offsets.Pin) bool { return f.Topics[topic] > 0 })
	}
}

func (t *Topics) lookUp(name string) (topic *pipeline.Topic, pin offsets.Pin, pinned bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	pin, pinned = t.pins[name]
	return t.open[name], pin, pinned
}

// pinned returns the pins of the topics that the lease writes to.
func (t *Topics) pinned() map[string]offsets.Pin {
	t.mu.Lock()
	defer t.mu.Unlock()
	pins := map[string]offsets.Pin{}
	for name, topic := range t.open {
		if topic.Rejected == nil {
			pins[name] = pinOf(topic)
		}
	}
	return pins
}

// writes reports whether the lease writes to a topic.
func (t *Topics) writes(name string) bool {
	topic, _, _ := t.lookUp(name)
	return topic != nil && topic.Rejected == nil
}

// keep returns the topic that another shard opened meanwhile, if any: all have the same pin.
func (t *Topics) keep(topic *pipeline.Topic) *pipeline.Topic {
	t.mu.Lock()
	defer t.mu.Unlock()
	if have := t.open[topic.Name]; have != nil {
		return have
	}
	t.open[topic.Name] = topic
	return topic
}

// pinOf returns what must not change while records of a topic exist (I5).
func pinOf(t *pipeline.Topic) offsets.Pin {
	return offsets.Pin{Partitions: t.Partitions, KeySchema: t.Encoder.KeyID()}
}

// Pins returns the pins of new topics.
func Pins(all []*pipeline.Topic) map[string]offsets.Pin {
	if len(all) == 0 {
		return nil
	}
	pins := map[string]offsets.Pin{}
	for _, t := range all {
		pins[t.Name] = pinOf(t)
	}
	return pins
}

// Topic returns where the records of a topic go. A topic that is new is created, if it may, before its first record.
func (t *Topics) Topic(ctx context.Context, name string) (*pipeline.Topic, error) {
	topic, pin, pinned := t.lookUp(name)
	if topic != nil {
		return topic, nil
	}
	partitions, known := t.frontier.Topics[name]
	if !known && !pinned {
		var err error
		partitions, err = t.openNewTopic(ctx, name)
		if errors.As(err, new(*topics.RejectedError)) {
			topic = &pipeline.Topic{Name: name, Rejected: err}
			if t.catalog.DeadLetter != "" {
				t.keep(topic) // else each of its events would ask the brokers
			}
			return topic, nil
		}
		if err != nil {
			return nil, err
		}
		if pin, pinned, err = t.pinOfOthers(name); err != nil {
			return nil, err
		}
	}
	enc, err := t.catalog.encoders.get(ctx, name)
	if err != nil {
		return nil, &pipeline.EncoderError{Err: err}
	}
	if !pinned {
		pin = offsets.Pin{Partitions: partitions, KeySchema: cmp.Or(t.frontier.KeySchemas[name], enc.KeyID())}
	}
	if pin.KeySchema != enc.KeyID() { // I5: the id is in the key's bytes, by which its partition is chosen
		return nil, plain.SettingsErrorf("the registry gives schema %d for the keys of topic %s, "+
			"which were written with schema %d: with another one, keys would move to other partitions. Restore the "+
			"registry, or restart from scratch with another BRIDGE_NAME and BRIDGE_TOPIC",
			enc.KeyID(), name, pin.KeySchema)
	}
	return t.keep(&pipeline.Topic{
		Name: name, Encoder: enc, Partitions: pin.Partitions,
		New: !known || t.frontier.KeySchemas[name] != pin.KeySchema,
	}), nil
}

// pinOfOthers returns the pin of a new topic that another lease has found, if its cursor is in the view. A scan writes
// the rows of a container with one lease, and others deliver its events: a key must have one partition (I5).
func (t *Topics) pinOfOthers(name string) (pin offsets.Pin, pinned bool, err error) {
	s, _, err := t.view.Get()
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
func (t *Topics) Known(name string) bool {
	topic, _, pinned := t.lookUp(name)
	_, known := t.frontier.Topics[name]
	return topic != nil || pinned || known
}

// Prepare creates the topics of a block that are new. They are admitted in the order of their events, and created with
// one request: one after another, those of a thousand containers take minutes. An error is not lost, since Topic meets
// it again.
func (t *Topics) Prepare(ctx context.Context, names []string) {
	names = slices.DeleteFunc(names, t.Known)
	if len(names) == 0 || t.catalog.creating.Take(ctx) != nil { // other leases may want the same ones
		return
	}
	defer t.catalog.creating.Leave()
	var missing []string
	for _, name := range names {
		if t.admitted(name) {
			continue
		}
		err := t.admit(ctx, name)
		switch {
		case err == nil:
			missing = append(missing, name)
		case !errors.As(err, new(*topics.RejectedError)):
			return
		}
	}
	if len(missing) < 2 {
		return
	}
	if n, err := t.catalog.Admin.Prepare(ctx, missing); err == nil && n > 0 {
		total := 0
		for name := range t.catalog.admitted.Range {
			if t.admitted(name.(string)) {
				total++
			}
		}
		t.catalog.Log.Info("topics created", "topics", n, "since_start", total, "limit", t.catalog.Plan.Limit)
	}
}

// openNewTopic makes sure that a topic that the frontier and the cursor do not know may be written to, and exists.
func (t *Topics) openNewTopic(ctx context.Context, name string) (partitions int32, err error) {
	if err := t.catalog.creating.Take(ctx); err != nil { // two leases may want the last topic of the limit
		return 0, err
	}
	err = t.admit(ctx, name)
	t.catalog.creating.Leave()
	if err != nil {
		return 0, err
	}
	o, err := t.catalog.openings.get(ctx, name)
	if err != nil {
		return 0, err
	}
	t.opens(name)
	if o.limit < t.limit { // it may be raised since: else the tenure would begin again and again
		o.limit, err = t.catalog.Admin.MaxMessage(ctx, name)
	}
	if err == nil && o.limit < t.limit { // the other topics are within the limit of this tenure
		err = ErrLimitChanged
	}
	return o.partitions, err
}

// opens notes that this instance has opened a topic since the last reset: it may be deleted after the next one.
func (t *Topics) opens(name string) { t.catalog.opened.Store(name, t.frontier.Born) }

// admit decides about a topic that the frontier and the cursor do not know. A client that may create containers chooses
// these names, and how many there are.
func (t *Topics) admit(ctx context.Context, topic string) error {
	if t.catalog.Constant() != nil {
		return nil
	}
	s, _, err := t.view.Get()
	if err != nil {
		return err
	}
	if t.found(s, topic) {
		return nil // another lease was here before
	}
	pins := t.allPins(s)
	pins[topic] = offsets.Pin{Partitions: t.catalog.Plan.Partitions}
	f := *t.frontier
	f.Adopt(pins)
	count := len(f.Topics)
	if err := t.catalog.Admin.WithinLimit(topic, count); err != nil {
		return err
	}
	most, err := t.catalog.stateLimit(ctx)
	if err != nil {
		return err
	}
	if most != t.stateLimit {
		return ErrLimitChanged
	}
	if err := topics.FitsState(topic, t.catalog.state(), count, f.Size(pins), most); err != nil {
		return err
	}
	if err := t.rejectForeign(ctx, topic); err != nil {
		return err
	}
	if near, do := t.catalog.Admin.NearLimit(count); near {
		t.catalog.Log.Warn("the number of topics is near its limit", "topics", count, "limit", t.catalog.Plan.Limit,
			"hint", do)
	}
	t.catalog.admitted.Store(topic, t.frontier.Born)
	return nil
}

// admitted reports whether this instance has admitted a topic since the last reset.
func (t *Topics) admitted(topic string) bool {
	born, ok := t.catalog.admitted.Load(topic)
	return ok && born == t.frontier.Born
}

// rejectForeign rejects a topic that holds records which this bridge did not write. With a literal prefix the operator
// has said which topics are the bridge's, unless they are another bridge's. Without transactions, records of an owner
// that crashed before its first cursor look like somebody else's, too: the operator decides.
func (t *Topics) rejectForeign(ctx context.Context, topic string) error {
	if used, err := t.catalog.used(ctx, topic); !used || err != nil {
		return err
	}
	// Another instance may have found the topic, and committed its first records, since the view was read. They can be
	// read, but the end of their transaction may not have reached the partition of the cursor yet.
	ends, err := t.catalog.Admin.LastEnds(ctx, t.catalog.state())
	if err != nil {
		return err
	}
	s, err := t.view.Await(ctx, func(s *offsets.State) bool { return s.Reached(ends) })
	if err != nil {
		return err
	}
	if t.found(s, topic) || s.Frontier != nil && s.Frontier.Topics[topic] > 0 {
		return nil
	}
	claims, err := t.catalog.readClaims(ctx, claimsAge)
	if err == nil {
		err = t.catalog.Sole([]string{topic}, claims)
	}
	if err != nil {
		return err
	}
	if t.catalog.Adopt || t.catalog.Names.Prefixed() {
		return nil
	}
	return topics.Foreign(topic)
}

// found reports whether a topic is one of allPins.
func (t *Topics) found(s *offsets.State, topic string) bool {
	return t.admitted(topic) || t.writes(topic) || slices.ContainsFunc(s.Cursors, func(c *offsets.Cursor) bool {
		return c != nil && c.Pins[topic].Partitions > 0
	})
}

// allPins returns the pins of all topics that leases have found: of other instances those that are committed, of this
// one also those that are not.
func (t *Topics) allPins(s *offsets.State) map[string]offsets.Pin {
	pins := map[string]offsets.Pin{}
	for topic, born := range t.catalog.admitted.Range {
		if born == t.frontier.Born {
			pins[topic.(string)] = offsets.Pin{Partitions: t.catalog.Plan.Partitions}
		}
	}
	for _, c := range s.Cursors {
		if c != nil {
			maps.Copy(pins, c.Pins)
		}
	}
	maps.Copy(pins, t.pinned())
	return pins
}
