package simulation

import (
	"context"
	"time"

	"blobfeed/bridge"
	"blobfeed/internal/topicname"
	"blobfeed/offsets"
)

// toolTimeout is when a seek or reset is given up.
const toolTimeout = 30 * time.Second

// seek does what "bridge seek --force" does.
func (w *world) seek(to bridge.Target, crash time.Duration) error {
	return w.seized(crash, func(ctx context.Context, s *offsets.Seized) error { return s.Seek(ctx, to.Move) })
}

// reset does what "bridge reset" does.
func (w *world) reset(crash time.Duration) error {
	return w.seized(crash, func(ctx context.Context, s *offsets.Seized) error { return s.Reset(ctx) })
}

// seized takes all leases and calls do. If crash is not zero, the tool dies after that time.
func (w *world) seized(crash time.Duration, do func(context.Context, *offsets.Seized) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), toolTimeout)
	defer cancel()
	w.links++
	l := newLink(w.net.DialContext, w.plan.latency(w.links))
	if crash > 0 {
		t := time.AfterFunc(crash, func() { l.sever(); cancel() })
		defer t.Stop()
	}
	client, err := w.client("tool", l)
	if err != nil {
		return err
	}
	s, err := offsets.Seize(ctx, &offsets.Config{
		Topic: topicname.State(name), Name: name, Instance: "tool", Transactional: w.plan.ExactlyOnce,
		TxnTimeout: w.plan.TxnTimeout, Client: client, Now: w.now,
	}, w.plan.Leases)
	if err != nil {
		return err
	}
	defer s.Close(ctx)
	if s.State.Frontier == nil {
		return nil
	}
	return do(ctx, s)
}
