package offsets

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Holder takes the leases that the group gives to this instance. Its methods are called from goroutines of the group's
// client, Assigned and Revoked one at a time.
type Holder interface {
	// Assigned adds leases, or none, whenever the group has agreed. It must not block.
	Assigned(leases []int32)
	// Revoked takes leases away and returns when they are released: until then nobody else gets them.
	// Lost is true when the group has already given them away (the session expired); then there is nothing to save.
	Revoked(leases []int32, lost bool)
	// Refused gets the error by which a session of the group, or an attempt to join it, has ended. The member retries
	// by itself.
	Refused(err error)
}

// refused implements kgo.HookGroupManageError.
type refused func(error)

func (f refused) OnGroupManageError(err error) {
	f(fmt.Errorf("keeping membership of the group: %w", err))
}

// heartbeat is how soon a member hears that leases are free. The leases of an instance that stops wait that long.
const heartbeat = 300 * time.Millisecond

func (cfg *Config) heartbeat(session time.Duration) time.Duration {
	if cfg.Frugal {
		return session / 4
	}
	return min(heartbeat, session/4)
}

// Join makes this instance a member of the group until the returned function is called, which hands over every
// lease first. It does not wait for brokers that do not answer when its context ends: they notice after a
// session. Nothing is fetched from the topic: membership alone decides who holds what.
func Join(cfg *Config, group string, session time.Duration, h Holder) (leave func(context.Context), err error) {
	told := func(f func([]int32)) func(context.Context, *kgo.Client, map[string][]int32) {
		return func(_ context.Context, _ *kgo.Client, m map[string][]int32) {
			f(slices.Sorted(slices.Values(m[cfg.Topic])))
		}
	}
	hooks := []kgo.Hook{refused(h.Refused)}
	if cfg.Session != nil {
		hooks = append(hooks, cfg.Session)
	}
	cl, err := kgo.NewClient(append(slices.Clone(cfg.Client),
		kgo.ConsumerGroup(group),
		kgo.ConsumeTopics(cfg.Topic),
		kgo.Balancers(newBalancer()),
		kgo.DisableAutoCommit(),
		kgo.SessionTimeout(session),
		kgo.HeartbeatInterval(cfg.heartbeat(session)),
		kgo.WithHooks(hooks...),
		kgo.OnPartitionsAssigned(told(h.Assigned)),
		kgo.OnPartitionsRevoked(told(func(ps []int32) { h.Revoked(ps, false) })),
		kgo.OnPartitionsLost(told(func(ps []int32) { h.Revoked(ps, true) })))...)
	if err != nil {
		return nil, fmt.Errorf("joining group %s: %w", group, err)
	}
	cl.PauseFetchTopics(cfg.Topic)
	return func(ctx context.Context) {
		_ = cl.LeaveGroupContext(ctx) // Close alone would wait for an answer
		cl.Close()
	}, nil
}
