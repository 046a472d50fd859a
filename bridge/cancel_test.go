package bridge

import (
	"context"
	"strings"
	"testing"
	"time"

	"blobfeed/internal/testing/feedsim"
	"blobfeed/source"
)

// A stop gets through a store that hangs, wherever it does, without waiting for the shutdown's timeout.
func TestStopWhileTheStoreHangs(t *testing.T) {
	for name, where := range map[string]string{
		"watermark": "meta/", "manifest": "idx/segments/2026/01/01/0000/meta.json", "chunk": "log/",
	} {
		t.Run(name, func(t *testing.T) {
			m, live := simulated(t, feedsim.Spec{})
			must(t, live.Append(t.Context(), 10, nil))
			c := broker(t)
			o, _ := over(t, c, m)
			stuck := &hanging{memory: m, where: where, asked: make(chan struct{}, 100)}
			o.Feed.Source, o.Once, o.Pace.Shutdown = source.New(stuck, source.Options{}), false, time.Hour
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { done <- New(o).Run(ctx, context.Background()) }()
			<-stuck.asked
			cancel()
			select {
			case err := <-done:
				must(t, err)
			case <-time.After(20 * time.Second):
				t.Fatal("it hangs")
			}
			if data, _ := consume(t, c, promises()...); data != 0 {
				t.Errorf("%d records", data)
			}
		})
	}
}

// hanging is a store that does not answer for some names, until it is canceled.
type hanging struct {
	*memory
	where string
	asked chan struct{}
}

func (h *hanging) ReadAt(ctx context.Context, name string, p []byte, offset int64) (int, error) {
	if strings.HasPrefix(name, h.where) {
		h.asked <- struct{}{}
		<-ctx.Done()
		return 0, ctx.Err()
	}
	return h.memory.ReadAt(ctx, name, p, offset)
}
