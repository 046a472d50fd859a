package ops

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"blobfeed/internal/testing/ceiling"
)

// A probe of thousands of bridges that fail is answered at once, and not with all of their reasons.
func TestReasonsOfManyBridges(t *testing.T) {
	s := &FleetStatus{}
	for i := range 10_000 {
		reason := Reason{Code: "failed", Detail: strings.Repeat("x", 2000)}
		s.Bridges = append(s.Bridges, BridgeStatus{Name: fmt.Sprint("b", i), reasons: []Reason{reason}})
	}
	began := time.Now()
	text := s.why()
	if took := time.Since(began); took > ceiling.Slow || len(text) > 1<<20 ||
		!strings.HasSuffix(text, "\n9900 more bridges have reasons: see /status\n") {
		t.Errorf("%d bytes in %s: %.100s", len(text), took, text[len(text)-100:])
	}
}
