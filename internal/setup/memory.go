package setup

import (
	"math"
	"runtime/debug"

	"github.com/KimMachineGun/automemlimit/memlimit"

	"blobfeed/bridge"
	"blobfeed/internal/config"
	"blobfeed/source/ocf"
)

// containerShare is the part of a container's memory that the process takes: the kernel counts more than Go does.
const containerShare = 0.9

// ownPages is the program itself in memory, which Go does not count, and what lies between the heap and its limit at
// worst.
const ownPages = 64 << 20

// LimitMemory fits the process into its memory: the Go runtime collects garbage more often near the limit, and the
// engine holds fewer records. It returns the limit; 0 is none.
func LimitMemory(o *bridge.Options) int64 {
	limit := memoryLimit()
	if limit == 0 {
		return 0
	}
	debug.SetMemoryLimit(limit - min(limit/4, ownPages))
	// Measured: the rest is for the client's batches, the garbage collector, reading, which takes ReadSize a shard, and
	// the constant part of the program.
	o.BufferBytes = int(max(limit/8*3, 1<<20))
	o.BundleBytes = min(o.BundleBytes, limit/32)
	return limit
}

// memoryLimit returns the memory that the process may take: GOMEMLIMIT, or a share of the container's; 0 is any.
func memoryLimit() int64 {
	if set := debug.SetMemoryLimit(-1); set != math.MaxInt64 {
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

// blockLimits bounds what one block of the feed may take, from the memory of the process: several shards have one at a
// time, and measured, what is hostile takes up to forty times as much as records. A block of the service has 66 KB, and
// its events take as much again.
func blockLimits(memory int64) ocf.Limits {
	if memory == 0 {
		return ocf.Limits{}
	}
	block := int(min(max(memory/256, 1<<20), 64<<20))
	return ocf.Limits{Header: min(block/4, 1<<20), Block: block, Decompressed: block}
}
