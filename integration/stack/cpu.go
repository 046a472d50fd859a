package stack

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"
)

// userHertz is the unit of times in /proc on every platform of Linux that Go has.
const userHertz = 100

// BrokerCPU returns the CPU time that the Kafka nodes of this stack have taken so far. It reads /proc, which only Linux
// has.
func (s *Stack) BrokerCPU() (total time.Duration, err error) {
	for i := range s.nodes {
		_, p, err := s.live(i)
		if err != nil {
			return 0, err
		}
		used, err := cpuOf(p.cmd.Process.Pid)
		if err != nil {
			return 0, fmt.Errorf("reading the CPU time of Kafka node %d: %w", i, err)
		}
		total += used
	}
	return total, nil
}

func cpuOf(pid int) (time.Duration, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	// The name of the process, in parentheses, may hold spaces. The state behind it is field 3 of proc(5).
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	const user, system = 14 - 3, 15 - 3
	if len(fields) <= system {
		return 0, fmt.Errorf("%q has no times", stat)
	}
	ticks := 0
	for _, field := range [][]byte{fields[user], fields[system]} {
		n, err := strconv.Atoi(string(field))
		if err != nil {
			return 0, err
		}
		ticks += n
	}
	return time.Duration(ticks) * time.Second / userHertz, nil
}
