package setup

import (
	"io/fs"
	"math"
	"os"
	"path"
	"runtime/debug"
	"strconv"
	"strings"

	"blobfeed/bridge"
	"blobfeed/internal/config"
	"blobfeed/source/ocf"
)

// containerShare is how much of a container's memory the process takes by itself: the kernel counts more than Go does.
const containerShare = 0.9

// ownPages is the program itself in memory, which Go does not count, and what lies between the heap and its limit at
// worst.
const ownPages = 64 << 20

// LimitMemory fits the process into its memory: the Go runtime collects garbage more often near the limit, and the engine
// holds fewer records. It returns the limit; 0 is none. The processors need nothing: Go takes those of the container.
func LimitMemory(c *config.Config, o *bridge.Options) int64 {
	limit := memoryLimit(c)
	if limit == 0 {
		return 0
	}
	debug.SetMemoryLimit(limit - min(limit/4, ownPages))
	// Measured: the rest is for the client's batches, the garbage collector, reading, which takes ReadSize a shard, and
	// what is
	// always there.
	o.BufferBytes = int(max(limit/8*3, 1<<20))
	o.BundleBytes = min(o.BundleBytes, limit/32)
	return limit
}

// memoryLimit returns the memory that the process may take; 0 is any.
func memoryLimit(c *config.Config) int64 {
	if c.MemoryLimit != 0 {
		return int64(c.MemoryLimit)
	}
	if set := debug.SetMemoryLimit(-1); set != math.MaxInt64 {
		return set // GOMEMLIMIT
	}
	return int64(float64(containerLimit(os.DirFS("/"))) * containerShare)
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

// containerLimit returns the memory limit of the control group of this process, of version 2 or 1; 0 if there is none.
func containerLimit(root fs.FS) int64 {
	groups, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return 0 // not Linux
	}
	for line := range strings.Lines(string(groups)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		// Inside a container the group is mounted as the root, outside it is below.
		var files []string
		switch {
		case parts[1] == "":
			files = []string{path.Join("sys/fs/cgroup", parts[2], "memory.max"), "sys/fs/cgroup/memory.max"}
		case parts[1] == "memory":
			files = []string{path.Join("sys/fs/cgroup/memory", parts[2], "memory.limit_in_bytes"), "sys/fs/cgroup/memory/memory.limit_in_bytes"}
		}
		for _, file := range files {
			text, err := fs.ReadFile(root, file)
			if err != nil {
				continue
			}
			// "max", or what version 1 says for none: a number near the largest.
			if n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && n > 0 && n < 1<<60 {
				return n
			}
		}
	}
	return 0
}
