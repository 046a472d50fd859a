package setup

import (
	"testing"
	"testing/fstest"
)

func TestContainerLimit(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  int64
	}{
		"not Linux":              {map[string]string{}, 0},
		"version 2, inside":      {map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "268435456\n"}, 256 << 20},
		"version 2, a unit":      {map[string]string{"proc/self/cgroup": "0::/system.slice/bridge.service\n", "sys/fs/cgroup/system.slice/bridge.service/memory.max": "1000000\n"}, 1e6},
		"version 2, no limit":    {map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "max\n"}, 0},
		"version 1":              {map[string]string{"proc/self/cgroup": "12:cpu:/a\n5:memory:/docker/1\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "5000000\n"}, 5e6},
		"version 1, no limit":    {map[string]string{"proc/self/cgroup": "5:memory:/\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n"}, 0},
		"version 2, not mounted": {map[string]string{"proc/self/cgroup": "0::/\n"}, 0},
	} {
		root := fstest.MapFS{}
		for file, text := range c.files {
			root[file] = &fstest.MapFile{Data: []byte(text)}
		}
		if got := containerLimit(root); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}
