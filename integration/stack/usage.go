package stack

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
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
		used, err := CPUOf(p.cmd.Process.Pid)
		if err != nil {
			return 0, fmt.Errorf("reading the CPU time of Kafka node %d: %w", i, err)
		}
		total += used
	}
	return total, nil
}

// CPUOf returns the CPU time that a process has taken so far.
func CPUOf(pid int) (time.Duration, error) {
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

// ResidentOf returns the resident memory of a process in bytes, as the kernel counts it for the limit of a container.
func ResidentOf(pid int) (float64, error) { return memoryOf(pid, "VmRSS") }

// LargestOf returns the largest resident memory of a process so far.
func LargestOf(pid int) (float64, error) { return memoryOf(pid, "VmHWM") }

func memoryOf(pid int, name string) (bytes float64, err error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, fmt.Errorf("reading the memory of a process: %w", err)
	}
	_, size, _ := strings.Cut(string(status), name+":")
	if _, err := fmt.Sscanf(size, "%f kB", &bytes); err != nil {
		return 0, fmt.Errorf("reading the memory of a process: its status has no %s, as a zombie's: %w", name, err)
	}
	return bytes * 1024, nil
}
