package bridge

import (
	"context"
	"errors"
	"testing"
	"time"

	"blobfeed/source"
)

// One worker waits for the storage service, and another for the same manifest. That one must hear when it has to go.
func TestManifestWaitIsCancelled(t *testing.T) {
	m := newMemory()
	m.segment("2026/01/01/0000", "Publishing", 60, map[int][]happened{0: nil})
	seg, err := source.ParseSegment("2026/01/01/0000")
	must(t, err)
	asked, answer := make(chan struct{}), make(chan struct{})
	m.onRead = func(string) error {
		close(asked)
		<-answer
		return nil
	}
	shared := newHistory(source.New(m, source.Options{}), time.Second)
	first := make(chan error, 1)
	go func() {
		_, err := shared.readManifest(t.Context(), seg, time.Time{})
		first <- err
	}()
	<-asked
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := shared.readManifest(gone, seg, time.Time{}); !errors.Is(err, context.Canceled) {
		t.Errorf("err = %v", err)
	}
	close(answer)
	must(t, <-first)
}
