package history

import (
	"context"
	"errors"
	"testing"
	"time"

	"blobfeed/internal/testing/feedsim"
	"blobfeed/source"
)

// slow is a store that says when it is asked for a blob, once, and answers when it may.
type slow struct {
	source.Store
	asked, answer chan struct{}
}

func (s slow) ReadAt(ctx context.Context, name string, p []byte, offset int64) (int, error) {
	close(s.asked)
	<-s.answer
	return s.Store.ReadAt(ctx, name, p, offset)
}

// One worker waits for the storage service, and another for the same manifest. That one must hear when it has to go.
func TestManifestWaitIsCancelled(t *testing.T) {
	store := slow{simulated(t, t.TempDir(), feedsim.Spec{Segments: 1, EventsPerSegment: 1}), make(chan struct{}), make(chan struct{})}
	seg := source.SegmentAt(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	shared := New(source.New(store, source.Options{}), time.Second)
	first := make(chan error, 1)
	go func() {
		_, err := shared.Manifest(t.Context(), seg, time.Time{})
		first <- err
	}()
	<-store.asked
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := shared.Manifest(gone, seg, time.Time{}); !errors.Is(err, context.Canceled) {
		t.Errorf("err = %v", err)
	}
	close(store.answer)
	if err := <-first; err != nil {
		t.Error(err)
	}
}
