package bridge

import (
	"maps"
	"sync"

	"blobfeed/bridge/pipeline"
	"blobfeed/offsets"
)

// openTopics are the topics that a lease writes to. If the frontier does not know a topic, because a container's first
// event made it, the cursor pins it in the transaction of the first record. When the segment is complete, the frontier
// takes the pin over, and the topic gets that marker. So a key keeps its partition until then, also over a crash (I5:
// in a segment, a blob has one shard, and so one lease), and no marker misses a topic that has records (I6).
type openTopics struct {
	mu   sync.Mutex
	open map[string]*pipeline.Topic
	pins map[string]offsets.Pin // of the cursor
}

// renew forgets what belongs to another frontier or another tenure of the lease. Pins of the current segment stay until
// its marker (I5). Of the others, those that the frontier knows are of the past: the topic may have more partitions
// since. A topic that it does not know has rows of the scan that is under way.
func (t *openTopics) renew(c *offsets.Cursor, f *offsets.Frontier) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.open, t.pins = map[string]*pipeline.Topic{}, maps.Clone(c.Pins)
	if c.Segment != f.Current {
		maps.DeleteFunc(t.pins, func(topic string, _ offsets.Pin) bool { return f.Topics[topic] > 0 })
	}
}

func (t *openTopics) lookUp(name string) (topic *pipeline.Topic, pin offsets.Pin, pinned bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	pin, pinned = t.pins[name]
	return t.open[name], pin, pinned
}

// pinned returns the pins of the topics that the lease writes to.
func (t *openTopics) pinned() map[string]offsets.Pin {
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
func (t *openTopics) writes(name string) bool {
	topic, _, _ := t.lookUp(name)
	return topic != nil && topic.Rejected == nil
}

// keep returns the topic that another shard opened meanwhile, if any: all have the same pin.
func (t *openTopics) keep(topic *pipeline.Topic) *pipeline.Topic {
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

// pinsOf returns the pins of new topics.
func pinsOf(all []*pipeline.Topic) map[string]offsets.Pin {
	if len(all) == 0 {
		return nil
	}
	pins := map[string]offsets.Pin{}
	for _, t := range all {
		pins[t.Name] = pinOf(t)
	}
	return pins
}
