package setup

import (
	"errors"
	"math"
	"runtime/debug"
	"testing"

	"blobfeed/bridge"
	"blobfeed/internal/config"
)

// A container's limit is shared with the kernel; without a limit, or control groups, there is none to keep to.
func TestContainerLimit(t *testing.T) {
	for name, c := range map[string]struct {
		group uint64
		err   error
		want  int64
	}{
		"a limit":             {1000 << 20, nil, 900 << 20},
		"none":                {0, errors.New("memory is not limited"), 0},
		"none, version 1":     {9223372036854771712, nil, 0},
		"no control groups":   {0, errors.New("cgroups is not supported on this system"), 0},
		"an unreadable group": {12345, errors.New("permission denied"), 0},
	} {
		if got := containerLimit(c.group, c.err); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// Reads become smaller where there is little memory, but not larger where there is much.
func TestReadSize(t *testing.T) {
	c := config.Defaults()
	for memory, want := range map[int64]int64{
		0: 4 << 20, 8 << 30: 4 << 20, 256 << 20: 4 << 20, 128 << 20: 2 << 20, 1: 64 << 10,
	} {
		if got := readSize(c, memory); got != want {
			t.Errorf("with %d bytes: %d, want %d", memory, got, want)
		}
	}
}

func TestBatchLimit(t *testing.T) {
	for memory, want := range map[int64]int{
		0: 0, 64 << 20: 4 << 20, 512 << 20: 8 << 20, 64 << 30: 16 << 20,
	} {
		if got := batchLimit(memory); got != want {
			t.Errorf("%d MiB: %d", memory>>20, got)
		}
	}
}

// Without GOMEMLIMIT the process plans with little, also in a large container.
func TestMemoryBudget(t *testing.T) {
	const unset = math.MaxInt64
	for name, c := range map[string]struct{ set, limit, want int64 }{
		"nothing is set":    {unset, 0, ownBudget},
		"a large container": {unset, 8 << 30, ownBudget},
		"a small container": {unset, 100 << 20, 100 << 20},
		"GOMEMLIMIT, more":  {1 << 30, 1 << 30, 1 << 30},
		"GOMEMLIMIT, less":  {64 << 20, 64 << 20, 64 << 20},
	} {
		if got := memoryBudget(c.set, c.limit); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// Many bridges take more than one, unless GOMEMLIMIT says how much, and never more than the container has.
func TestRuntimeLimit(t *testing.T) {
	const unset, mib = math.MaxInt64, 1 << 20
	for name, c := range map[string]struct {
		set, limit, budget int64
		bridges            int
		want               int64
	}{
		"one":                   {unset, 0, ownBudget, 1, 120 * mib},
		"many":                  {unset, 0, ownBudget, 300, 270 * mib},
		"many, GOMEMLIMIT":      {200 * mib, 200 * mib, 200 * mib, 300, 150 * mib},
		"many, small container": {unset, 256 * mib, ownBudget, 300, 192 * mib},
		"many, large container": {unset, 8192 * mib, ownBudget, 300, 270 * mib},
	} {
		if got := runtimeLimit(c.set, c.limit, c.budget, c.bridges); got != c.want {
			t.Errorf("%s: %d MiB, want %d", name, got/mib, c.want/mib)
		}
	}
}

// LimitMemory may be called for each bridge: what it has set is not taken for GOMEMLIMIT.
func TestLimitMemoryAgain(t *testing.T) {
	was := debug.SetMemoryLimit(math.MaxInt64)
	defer debug.SetMemoryLimit(was)
	var first, second bridge.Options
	LimitMemory(&first, 3)
	set := debug.SetMemoryLimit(-1)
	if LimitMemory(&second, 3); first.Pace.BufferBytes != second.Pace.BufferBytes || set == math.MaxInt64 ||
		debug.SetMemoryLimit(-1) != set {
		t.Errorf("%d, then %d bytes; limits %d, then %d", first.Pace.BufferBytes, second.Pace.BufferBytes, set,
			debug.SetMemoryLimit(-1))
	}
}
