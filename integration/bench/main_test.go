package main

import (
	"testing"

	"blobfeed/internal/fakebroker"
)

// Both measurements run: what docs/performance.md says can be measured again.
func TestMeasures(t *testing.T) {
	if err := run(t.Context(), 2000, 3, 1, 0); err != nil {
		t.Error(err)
	}
	cluster := fakebroker.New(t)
	if err := smallSegments(t.Context(), cluster.ListenAddrs(), "a test", 20, 3, bundleBytes); err != nil {
		t.Error(err)
	}
}
