package offsets

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"blobfeed/internal/testing/fakebroker"
)

// Brokers that never end a former owner's transaction do not hold up a stop, and the wait for them is reported.
func TestAcquireWithoutAProducerID(t *testing.T) {
	c := fakebroker.New(t)
	cfg, ctx := configOf(t, c)
	v := viewOf(t, cfg)
	asked := make(chan struct{}, 1000)
	c.ControlKey(int16(kmsg.InitProducerID), func(kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		asked <- struct{}{}
		return nil, nil, false
	})
	c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.InitProducerID}, Err: kerr.ConcurrentTransactions, Count: -1})
	fails := func(ctx context.Context, want string) {
		t.Helper()
		done := make(chan error, 1)
		go func() {
			_, err := Acquire(ctx, cfg, v, 1)
			done <- err
		}()
		select {
		case err := <-done:
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %q", err, want)
			}
		case <-time.After(20 * time.Second):
			t.Errorf("it waits for an error %q", want)
		}
	}
	stopped, stop := context.WithCancel(ctx)
	go func() {
		<-asked
		stop()
	}()
	fails(stopped, "context canceled")
	cfg.TxnTimeout = 200 * time.Millisecond
	fails(ctx, "no producer ID within 200ms")
}
