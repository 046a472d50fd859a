package bridge

import (
	"context"
	"fmt"
	"maps"
	"sync"

	"blobfeed/envelope"
	"blobfeed/offsets"
)

// encoders makes the encoder of a topic when the topic is first written to: with Avro that takes the registry, which may
// be down, and then only stops what needs it.
type encoders struct {
	make func(ctx context.Context, topic string) (*envelope.Encoder, error)

	mu sync.Mutex
	of map[string]*lazyEncoder
}

type lazyEncoder struct {
	turn turn
	*envelope.Encoder
}

func (e *encoders) get(ctx context.Context, topic string) (*envelope.Encoder, error) {
	e.mu.Lock()
	lazy := e.of[topic]
	if lazy == nil {
		lazy = &lazyEncoder{turn: newTurn()}
		e.of[topic] = lazy
	}
	e.mu.Unlock()
	if err := lazy.turn.take(ctx); err != nil { // those that wait want the same
		return nil, err
	}
	defer lazy.turn.leave()
	if lazy.Encoder == nil {
		enc, err := e.make(ctx, topic)
		if err != nil {
			return nil, err
		}
		lazy.Encoder = enc
	}
	return lazy.Encoder, nil
}

// encoderError says that a topic has no encoder yet: mostly the registry lacks its schema, refuses it, or is down.
type encoderError struct{ error }

func (e *encoderError) Unwrap() error { return e.error }

// outlet is a topic as a lease writes to it during a segment.
type outlet struct {
	topic      string
	encoder    *envelope.Encoder
	partitions int32 // I5: as pinned, not the broker's of this moment
	found      bool  // the frontier does not know all of it: the cursor has to hold the pin
	pin        offsets.Pin
}

// outlets are those of a lease. A topic that the frontier does not know, since a container's first event made it, is
// pinned by the cursor, in the transaction of the first record; when the segment is complete the frontier takes it over,
// and it gets that marker. So a key stays where it is until then (I5: its shard, and so its lease, is the same for all of
// a segment), also over a crash, and no marker misses a topic that has records (I6).
type outlets struct {
	mu   sync.Mutex
	open map[string]*outlet
	pins map[string]offsets.Pin // of the cursor

	refused map[string]error // of topics whose events become dead letters until the next segment
}

// reset forgets what belongs to another frontier or another hold of the lease.
func (o *outlets) reset(c *offsets.Cursor, f *offsets.Frontier) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.open, o.pins, o.refused = map[string]*outlet{}, nil, map[string]error{}
	if f != nil && c.Segment == f.Current {
		o.pins = maps.Clone(c.Pins)
	}
}

func (o *outlets) get(topic string) (*outlet, offsets.Pin, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	pin, pinned := o.pins[topic]
	return o.open[topic], pin, pinned
}

// opened returns the pins of the topics that the lease writes to.
func (o *outlets) opened() map[string]offsets.Pin {
	o.mu.Lock()
	defer o.mu.Unlock()
	pins := map[string]offsets.Pin{}
	for topic, out := range o.open {
		pins[topic] = out.pin
	}
	return pins
}

func (o *outlets) refusal(topic string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.refused[topic]
}

func (o *outlets) refuse(topic string, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.refused[topic] = err
}

// put returns the outlet that another shard made meanwhile, if any: all have the same pin.
func (o *outlets) put(out *outlet) *outlet {
	o.mu.Lock()
	defer o.mu.Unlock()
	if have := o.open[out.topic]; have != nil {
		return have
	}
	o.open[out.topic] = out
	return out
}

// outlet returns where the records of a topic go. A topic that is new is created, if it may, before its first record.
func (w *worker) outlet(ctx context.Context, topic string) (*outlet, error) {
	out, pin, pinned := w.outlets.get(topic)
	if out != nil {
		return out, nil
	}
	partitions, known := w.frontier.Topics[topic]
	if !known {
		if err := w.newTopic(ctx, topic); err != nil {
			return nil, err
		}
	}
	if !known && !pinned {
		if err := w.admit(ctx, topic); err != nil {
			return nil, err
		}
		var err error
		if partitions, err = w.openTopic(ctx, topic); err != nil {
			return nil, err
		}
		limit, err := w.messageLimit(ctx, topic)
		if err != nil {
			return nil, err
		}
		if limit < w.limit {
			return nil, errLimitChanged
		}
	}
	enc, err := w.encoders.get(ctx, topic)
	if err != nil {
		return nil, &encoderError{err}
	}
	if !pinned {
		pin = offsets.Pin{Partitions: partitions, KeySchema: enc.KeyID()}
		if id := w.frontier.KeySchemas[topic]; id != 0 {
			pin.KeySchema = id
		}
	}
	if pin.KeySchema != enc.KeyID() { // I5: the id is in the key's bytes, by which its partition is chosen
		return nil, &SettingsError{Problem: fmt.Sprintf("the registry gives schema %d for the keys of topic %s, which were written with schema %d: "+
			"with another one, keys would move to other partitions. Restore the registry, or start over with another BRIDGE_NAME and BRIDGE_TOPIC", enc.KeyID(), topic, pin.KeySchema)}
	}
	return w.outlets.put(&outlet{
		topic: topic, encoder: enc, partitions: pin.Partitions, pin: pin,
		found: !known || w.frontier.KeySchemas[topic] != pin.KeySchema,
	}), nil
}
