// Package ceiling fails a test that takes more memory or time than it may, whatever its input is.
package ceiling

import (
	"runtime/metrics"
	"testing"
	"time"
)

// Slow is how long an input may take: far longer than any does, for tests share their machine.
const Slow = 5 * time.Second

// Hold calls f, and fails the test if f allocates more than memory bytes, freed or not, or takes longer than Slow.
// Tests that allocate at the same time count, too. With the race detector, memory is not judged.
func Hold(t testing.TB, memory uint64, f func()) {
	t.Helper()
	before, began := allocated(), time.Now()
	f()
	if took := time.Since(began); took > Slow {
		t.Errorf("it takes %s", took)
	}
	if grown := allocated() - before; grown > memory && !raced {
		t.Errorf("it allocates %d KiB, want at most %d", grown>>10, memory>>10)
	}
}

func allocated() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
