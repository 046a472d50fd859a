package offsets

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/internal/crash"
)

// EndOf returns the high watermark of a partition of topic: the offset behind its last record, committed or not.
func EndOf(ctx context.Context, cl *kgo.Client, topic string, p int32) (int64, error) {
	ends, err := kadm.NewClient(cl).ListEndOffsets(ctx, topic)
	if err == nil { // of the other partitions an error does not matter here
		end, ok := ends.Lookup(topic, p)
		if err = end.Err; err == nil && !ok {
			err = errors.New("the brokers did not tell it")
		}
		if err == nil {
			return end.Offset, nil
		}
	}
	return 0, fmt.Errorf("reading the end of partition %d of %s: %w", p, topic, err)
}

// Known returns a state that holds everything that partition p had when it was called (I10). What an open
// transaction of another producer holds there has to be decided first.
func (v *View) Known(ctx context.Context, cfg *Config, cl *kgo.Client, p int32) (*State, error) {
	end, err := EndOf(ctx, cl, cfg.Topic, p)
	if err != nil {
		return nil, err
	}
	return v.pass(ctx, cfg, p, end)
}

// pass returns a state that has passed an offset of partition p, and reports a wait that is longer than a
// transaction may be open: then a broker has not ended one, and read_committed consumers of the topics wait as
// well.
func (v *View) pass(ctx context.Context, cfg *Config, p int32, offset int64) (*State, error) {
	if cfg.Waiting != nil {
		slow := time.AfterFunc(cfg.TxnTimeout, crash.Guard(ctx, "wait", func() {
			at := int64(-1)
			if s, _, err := v.Get(); err == nil {
				at = s.next[p]
			}
			cfg.Waiting(fmt.Sprintf("reading partition %d of %s: at offset %d, want %d", p, cfg.Topic, at, offset))
		}))
		defer slow.Stop()
	}
	return v.Await(ctx, func(s *State) bool { return s.Passed(p, offset) })
}

// Fence acquires lease p for nobody: it ends what the owner has open, and lets it commit nothing more. The owner is
// free to acquire the lease again: then it sees the frontier of after the fence. The caller closes what Fence returns.
//
// InitProducerID alone is not enough. If brokers left out the end of the lease's last transaction (torn.go), no view
// passes its records before another transaction of the lease ends, and during a move nobody else begins one.
func Fence(ctx context.Context, cfg *Config, view *View, p int32) (*Lease, error) {
	nobody := *cfg
	nobody.Instance = ""
	return Acquire(ctx, &nobody, view, p)
}
