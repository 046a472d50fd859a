package bridge

import (
	"context"
	"errors"
	"testing"
	"time"

	"blobfeed/internal/testing/feedsim"
	"blobfeed/offsets"
)

// Another instance takes a lease that we think is ours. We let it work for the time of a session; when the
// group still says nothing else then, the lease is ours.
func TestGiveWay(t *testing.T) {
	t.Parallel()
	m, live := simulated(t, feedsim.Spec{})
	must(t, live.Append(t.Context(), 20, nil))
	c := broker(t)
	o, r := over(t, c, m)
	o.Once = false
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- New(o).Run(ctx, t.Context()) }()
	await := func(read int) {
		t.Helper()
		for {
			r.mu.Lock()
			n := r.Read
			r.mu.Unlock()
			if n >= read {
				return
			}
			select {
			case <-r.changed:
			case err := <-done:
				t.Fatal("it ended: ", err)
			case <-time.After(20 * time.Second):
				t.Fatalf("%d events, want %d", n, read)
			}
		}
	}
	await(20)

	cfg := *o.lease()
	cfg.Instance, cfg.Now = "other", time.Now
	view := offsets.NewView(cfg.Topic, int(o.Kafka.Leases))
	viewing, endView := context.WithCancel(t.Context())
	defer endView()
	go func() { _ = view.Run(viewing, o.Kafka.Client...) }()
	other, err := offsets.Acquire(t.Context(), &cfg, view, 0)
	must(t, err)
	defer other.Close(t.Context())
	must(t, live.Append(t.Context(), 20, nil)) // it tries to write them, and finds itself fenced
	<-r.failing
	for until := time.Now().Add(o.Kafka.Session / 2); time.Now().Before(until); {
		cursor := other.Cursor()
		must(t, other.Commit(t.Context(), cursor, nil))
		time.Sleep(20 * time.Millisecond) // between two commits
	}
	await(40)
	if data, _ := consume(t, c, promises()...); data != 40 {
		t.Errorf("%d records", data)
	}
	cancel()
	must(t, <-done)
}

// An owner is fenced, and nobody else holds its lease: the report does not name another instance that has taken it.
func TestFencedByNobody(t *testing.T) {
	m, live := simulated(t, feedsim.Spec{})
	must(t, live.Append(t.Context(), 20, nil))
	c := broker(t)
	o, r := over(t, c, m)
	o.Once, o.Kafka.Session = false, 2*time.Minute // it does not wait that long, since nobody else wants the lease
	defer run(t, o)()
	r.await(t, func(c Commit) bool { return c.Read == 20 })
	cfg := o.lease()
	cfg.Now = time.Now
	view := offsets.NewView(cfg.Topic, int(o.Kafka.Leases))
	viewing, endView := context.WithCancel(t.Context())
	defer endView()
	go func() { _ = view.Run(viewing, o.Kafka.Client...) }()
	// On a slow machine the owner has acquired its lease again before the fence has read its own record back.
	fence, err := offsets.Fence(t.Context(), cfg, view, 0)
	if err == nil {
		fence.Close(t.Context())
	} else if !errors.Is(err, offsets.ErrFenced) {
		t.Fatal(err)
	}
	must(t, live.Append(t.Context(), 20, nil))
	r.awaitFailure(t, "no instance of another name has taken the lease")
	r.await(t, func(c Commit) bool { return c.Read == 40 })
	if data, _ := consume(t, c, promises()...); data != 40 {
		t.Errorf("%d records", data)
	}
}
