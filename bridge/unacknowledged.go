package bridge

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"blobfeed/internal/pause"
	"blobfeed/internal/topics"
)

// patience is how long brokers may take to acknowledge records before they are asked why; tests have a shorter one.
var patience = 5 * time.Second

// transactionLog is the topic in which brokers keep transactions.
const transactionLog = "__transaction_state"

// explainWait reports which topic takes no records, while brokers do not acknowledge those of a lease. Brokers that are
// only slow are no failure.
func (inst *instance) explainWait(ctx context.Context, lease int32) {
	for wait := patience; ; {
		names := append(inst.written(), inst.opts.offsetsTopic())
		if inst.opts.Transactional {
			names = append(names, transactionLog)
		}
		if err := topics.Unwritable(ctx, kadm.NewClient(inst.client), true, names...); err != nil && ctx.Err() == nil {
			inst.opts.Observer.Failed(lease, err)
			wait = maxDelay
		}
		if pause.For(ctx, wait) != nil {
			return
		}
	}
}
