package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/integration/stack"
	"blobfeed/internal/feedsim"
)

// cost is what a run of the program took, its start and its end included.
type cost struct {
	perSecond, micros, peak float64 // events; CPU of an event; resident bytes
}

// asUsersRunIt measures the program in a process of its own, with each memory limit in turn, so that all of them see
// the same machine. Without programs, it builds this one. The limit "none" is the program's own choice.
func asUsersRunIt(ctx context.Context, programs, limits []string, spec feedsim.Spec, rounds, brokers int) error {
	root, err := os.MkdirTemp("", "bridge-bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(root)
	if len(programs) == 0 {
		programs = []string{filepath.Join(root, "bridge")}
		if err := stack.Build(programs[0], ""); err != nil {
			return err
		}
	}
	feed := filepath.Join(root, "feed")
	if err := feedsim.Write(ctx, feedsim.Dir(feed), spec, nil); err != nil {
		return err
	}
	s, err := stack.Start(ctx, stack.Options{Brokers: max(1, brokers), Throughput: true}, nil)
	if err != nil {
		return err
	}
	defer s.Close()
	events := spec.EventsPerSegment * max(1, spec.Segments)
	costs := map[string][]cost{}
	for round := range rounds + 1 {
		for _, limit := range limits {
			for _, program := range programs {
				c, err := runProgram(ctx, program, limit, s.KafkaBrokers, feed, events)
				if err != nil {
					return err
				}
				if round > 0 { // the first one warms up
					costs[program+limit] = append(costs[program+limit], c)
				}
			}
		}
	}
	for _, limit := range limits {
		for _, program := range programs {
			var speeds, micros, peaks []float64
			for _, c := range costs[program+limit] {
				speeds, micros, peaks = append(speeds, c.perSecond), append(micros, c.micros), append(peaks, c.peak)
			}
			fmt.Printf(
				"%-10s GOMEMLIMIT=%-7s %8.0f events/s   %4.2f µs of CPU an event   largest resident size %4.0f MB\n",
				filepath.Base(program),
				limit,
				median(speeds),
				median(micros),
				median(peaks)/1e6,
			)
		}
	}
	return nil
}

// runProgram delivers the feed once.
func runProgram(
	ctx context.Context,
	program, limit string,
	brokers []string,
	feed string,
	events int,
) (c cost, err error) {
	name := fmt.Sprintf("bench-%d", time.Now().UnixNano())
	cmd := exec.CommandContext(ctx, program, "run", "--once")
	cmd.Env = append(os.Environ(), "BRIDGE_NAME="+name, "BRIDGE_TOPIC="+name, "BRIDGE_SOURCE_URL=file://"+feed,
		"BRIDGE_KAFKA_BROKERS="+strings.Join(brokers, ","), "BRIDGE_HTTP_ADDR=off",
		fmt.Sprint("BRIDGE_TOPIC_PARTITIONS=", partitions))
	if limit != "none" {
		cmd.Env = append(cmd.Env, "GOMEMLIMIT="+limit)
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return c, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	// Not ru_maxrss: it has the size of this process, which the program started as.
	sampled := time.NewTicker(20 * time.Millisecond)
	defer sampled.Stop()
	for {
		select {
		case <-sampled.C:
			c.peak = max(c.peak, largestResident(cmd.Process.Pid))
			continue
		case err = <-ended:
		}
		break
	}
	took := time.Since(began)
	if err != nil {
		return c, fmt.Errorf("running the program: %w:\n%s", err, &out)
	}
	c.perSecond = float64(events) / took.Seconds()
	c.micros = float64((cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Microseconds()) / float64(events)
	return c, deleteTopic(ctx, brokers, name)
}

// largestResident returns the largest resident size of a process so far; 0 if it has ended.
func largestResident(pid int) float64 { return memoryOf(pid, "VmHWM:") }

// residentNow returns the resident size of a process.
func residentNow(pid int) float64 { return memoryOf(pid, "VmRSS:") }

func memoryOf(pid int, line string) float64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	_, size, ok := strings.Cut(string(status), line)
	if !ok {
		return 0 // a zombie
	}
	kib, err := strconv.ParseFloat(strings.Fields(size)[0], 64)
	if err != nil {
		return 0
	}
	return kib * 1024
}

func deleteTopic(ctx context.Context, brokers []string, topic string) error {
	cl, err := kgo.NewClient(kgo.SeedBrokers(brokers...))
	if err != nil {
		return err
	}
	defer cl.Close()
	_, err = kadm.NewClient(cl).DeleteTopic(ctx, topic)
	return err
}
