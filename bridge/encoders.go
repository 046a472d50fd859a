package bridge

import (
	"context"
	"sync"

	"blobfeed/envelope"
)

// encoders makes the encoder of a topic when the topic is first written to: with Avro that takes the registry, which
// may be down, and then only stops what needs it.
type encoders struct {
	make func(ctx context.Context, topic string) (*envelope.Encoder, error)

	mu sync.Mutex
	of map[string]*lazyEncoder
}

type lazyEncoder struct {
	turn    turn
	encoder *envelope.Encoder // guarded by turn
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
	if lazy.encoder == nil {
		encoder, err := e.make(ctx, topic)
		if err != nil {
			return nil, err
		}
		lazy.encoder = encoder
	}
	return lazy.encoder, nil
}
