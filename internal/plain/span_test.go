package plain

import (
	"testing"
	"time"
)

// A duration shows seconds while they matter.
func TestSpan(t *testing.T) {
	for d, want := range map[time.Duration]string{
		28400 * time.Millisecond: "28s", 209 * time.Second: "3m29s", 3600 * time.Second: "1h0m",
		77*time.Minute + 31*time.Second: "1h18m", 49 * time.Hour: "2 days",
	} {
		if got := Span(d); got != want {
			t.Errorf("%s: %s, want %s", d, got, want)
		}
	}
}
