package main

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
)

// Both measurements run: what docs/performance.md says can be measured again.
func TestMeasures(t *testing.T) {
	if err := run(t.Context(), 2000, 3, 1, 0); err != nil {
		t.Error(err)
	}
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Close()
	if err := smallSegments(t.Context(), cluster.ListenAddrs(), "a test", 20, 3, bundleBytes); err != nil {
		t.Error(err)
	}
}
