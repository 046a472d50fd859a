//go:build soak

package soak

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"blobfeed/integration/stack"
)

// TestSoak is described in doc.go. SOAK_DURATION=2h is the real thing; -artifacts keeps the program's log.
func TestSoak(t *testing.T) {
	o := Options{Duration: 4 * time.Minute, Block: 75 * time.Second, Interval: time.Minute, Limit: 256 * mib,
		Dir: t.ArtifactDir(), Logf: t.Logf}
	if text := os.Getenv("SOAK_DURATION"); text != "" {
		var err error
		if o.Duration, err = time.ParseDuration(text); err != nil || o.Duration < time.Hour {
			t.Fatalf("SOAK_DURATION=%s: want an hour or more, %v", text, err)
		}
		o.Block, o.Interval = 10*time.Minute, time.Hour
	}
	o.Program = filepath.Join(t.TempDir(), "bridge")
	if err := stack.Build(o.Program, ""); err != nil {
		t.Fatal(err)
	}
	var err error
	if o.Rules, err = filepath.Abs("../../deploy/prometheus/alerts.yaml"); err != nil {
		t.Fatal(err)
	}
	if _, err := find(); err != nil {
		t.Fatal(err)
	}
	s, err := stack.Start(context.Background(), Stack, t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	r, err := Run(t.Context(), s, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Log("\n" + fmt.Sprint(r))
	if len(r.Failures) > 0 {
		t.Error("the soak fails")
	}
}
