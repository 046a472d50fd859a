package setup

import (
	"math"
	"runtime/debug"
	"sync"

	"github.com/KimMachineGun/automemlimit/memlimit"

	"blobfeed/bridge"
	"blobfeed/internal/config"
	"blobfeed/source/ocf"
)

// containerShare is the part of a container's memory that the process takes: the kernel counts more than Go does.
const containerShare = 0.9

// ownPages is the memory of the program itself, which Go does not count, and the most by which the heap exceeds its
// limit.
const ownPages = 64 << 20

// idleBridge is about what a bridge takes when nothing happens, goroutines and connections included.
const idleBridge = 512 << 10

// ownBudget is the memory that the process plans with where GOMEMLIMIT does not say how much. It keeps a catch-up below
// 150 MB, with less CPU for an event than without a bound (docs/project/performance.md).
const ownBudget = 160 << 20

// LimitMemory fits the process into its memory: the Go runtime collects garbage more often near the limit, and the
// engine holds fewer records. Bridges is how many the process has; each may call it. It returns the limit; 0 is none,
// and then the process still plans with a budget.
func LimitMemory(o *bridge.Options, bridges int) int64 {
	limit := memoryLimit()
	budget := memoryBudget(given(), limit)
	lowerLimit(runtimeLimit(given(), limit, budget, bridges))
	// Measured: with less for blocks, which are free again when the brokers have their records, these wait for each
	// other's answers, and with more the garbage collector takes more CPU. The rest is its headroom, the read buffers,
	// which have half of this, the client's batches, and the constant part of the program.
	o.Pace.BufferBytes = int(max(budget/8, 1<<20))
	o.Pace.BundleBytes = min(o.Pace.BundleBytes, budget/24)
	// One sweep at a time has this much, in one piece that the garbage collector does not look into.
	o.Pace.SweepBytes = int(budget / 3)
	return limit
}

// runtimeLimit returns what the Go runtime may take of a budget. Where GOMEMLIMIT does not say how much, the budget is
// for the records alone, and what idle bridges take comes on top: else the garbage collector would never rest.
func runtimeLimit(set, limit, budget int64, bridges int) int64 {
	heap := budget - min(budget/4, ownPages)
	if set != math.MaxInt64 || bridges < 2 {
		return heap
	}
	heap += int64(bridges) * idleBridge
	if limit != 0 {
		heap = min(heap, limit-min(limit/4, ownPages))
	}
	return heap
}

// lowered is the runtime's limit before and after LimitMemory.
var lowered struct {
	sync.Mutex
	from, to int64
}

func lowerLimit(to int64) {
	from := given()
	lowered.Lock()
	defer lowered.Unlock()
	lowered.from, lowered.to = from, to
	debug.SetMemoryLimit(to)
}

// given returns GOMEMLIMIT, also after LimitMemory; math.MaxInt64 is none.
func given() int64 {
	lowered.Lock()
	defer lowered.Unlock()
	if set := debug.SetMemoryLimit(-1); lowered.to == 0 || set != lowered.to {
		return set
	}
	return lowered.from
}

// memoryBudget returns the memory to plan with: all of what GOMEMLIMIT allows, and little of a large container.
func memoryBudget(set, limit int64) int64 {
	if set != math.MaxInt64 {
		return set
	}
	if limit == 0 {
		return ownBudget
	}
	return min(limit, ownBudget)
}

// memoryLimit returns the memory that the process may take: GOMEMLIMIT, or a share of the container's; 0 is any.
func memoryLimit() int64 {
	if set := given(); set != math.MaxInt64 {
		return set
	}
	return containerLimit(memlimit.FromCgroup())
}

// containerLimit returns the process's share of the limit of its control group. Without a limit, or control groups,
// there is an error, and none to keep to.
func containerLimit(group uint64, err error) int64 {
	if err != nil || group >= 1<<60 { // version 1 writes a number near the largest for no limit
		return 0
	}
	return int64(float64(group) * containerShare)
}

// readSize returns the size of one ranged read: reading takes that much for each shard, all of them at once.
func readSize(c *config.Config, memory int64) int64 {
	size := int64(c.Tuning.ReadSize)
	if memory == 0 {
		return size
	}
	return min(size, max(memory/64, 64<<10))
}

// blockLimits bounds the memory of one block of the feed, by the memory of the process. Several shards have a block at
// a time, and hostile blocks take up to forty times as much as records (measured). A block of the service has 66 KB,
// and its events take as much again.
func blockLimits(memory int64) ocf.Limits {
	if memory == 0 {
		return ocf.Limits{}
	}
	block := int(min(max(memory/256, 1<<20), 64<<20))
	return ocf.Limits{Header: min(block/4, 1<<20), Block: block, Decompressed: block}
}

// batchLimit bounds a batch of records that a Kafka client reads, by the memory of the process. As the smallest records
// a batch takes thirty times its bytes (measured). What bridges write fits into 1 MiB, unless topics permit more.
func batchLimit(memory int64) int {
	if memory == 0 {
		return 0
	}
	return int(min(max(memory/64, 4<<20), 16<<20))
}
