package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
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
	perSecond float64 // events
	micros    float64 // CPU of the program, an event
	broker    float64 // CPU of the brokers, an event, in microseconds
	disk      float64 // bytes on the brokers' disks, an event
	peak      float64 // resident bytes of the program
}

func (c cost) String() string {
	return fmt.Sprintf("%8.0f events/s  %5.2f µs CPU an event  %5.2f µs of the brokers  %5.0f bytes on disk  %4.0f MB",
		c.perSecond, c.micros, c.broker, c.disk, c.peak/1e6)
}

// middle takes the median of each figure.
func middle(costs []cost) cost {
	of := func(figure func(cost) float64) float64 {
		var all []float64
		for _, c := range costs {
			all = append(all, figure(c))
		}
		return median(all)
	}
	return cost{
		of(func(c cost) float64 { return c.perSecond }),
		of(func(c cost) float64 { return c.micros }),
		of(func(c cost) float64 { return c.broker }),
		of(func(c cost) float64 { return c.disk }),
		of(func(c cost) float64 { return c.peak }),
	}
}

// asUsersRunIt measures the program in a process of its own, with each variant of its settings in turn, so that all of
// them see the same machine.
func asUsersRunIt(ctx context.Context, programs, variants []string, spec feedsim.Spec, rounds, brokers int) error {
	root, programs, err := prepare(programs)
	defer os.RemoveAll(root)
	if err != nil {
		return err
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
	events := float64(spec.EventsPerSegment * max(1, spec.Segments))
	costs := map[string][]cost{}
	for round := range rounds + 1 {
		for _, variant := range variants {
			for _, program := range programs {
				before, err := s.BrokerCPU()
				if err != nil {
					return err
				}
				c, err := runProgram(ctx, program, variant, s.KafkaBrokers, feed, events)
				if err != nil {
					return err
				}
				after, err := s.BrokerCPU()
				if err != nil {
					return err
				}
				c.broker = float64((after - before).Microseconds()) / events
				if round > 0 { // the first one warms up
					costs[program+variant] = append(costs[program+variant], c)
				}
			}
		}
	}
	for _, variant := range variants {
		for _, program := range programs {
			fmt.Printf("%-10s %-40s %s\n", filepath.Base(program), variant, middle(costs[program+variant]))
		}
	}
	return nil
}

// runProgram delivers the feed once.
func runProgram(ctx context.Context, program, variant string, brokers []string, feed string, events float64) (c cost,
	err error) {
	name := fmt.Sprintf("bench-%d", time.Now().UnixNano())
	cmd, out := command(ctx, program, name, variant, feed, brokers, fmt.Sprint("BRIDGE_TOPIC_PARTITIONS=", partitions))
	cmd.Args = append(cmd.Args, "--once")
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
		return c, fmt.Errorf("running the program: %w:\n%s", err, out)
	}
	c.perSecond = events / took.Seconds()
	c.micros = float64((cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Microseconds()) / events
	size, err := sizeAndDelete(ctx, brokers, name)
	c.disk = float64(size) / events
	return c, err
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

// sizeAndDelete returns what the topics of a bridge take on the disks of all brokers, and deletes them.
func sizeAndDelete(ctx context.Context, brokers []string, name string) (size int64, err error) {
	cl, err := kgo.NewClient(kgo.SeedBrokers(brokers...))
	if err != nil {
		return 0, err
	}
	defer cl.Close()
	admin := kadm.NewClient(cl)
	dirs, err := admin.DescribeAllLogDirs(ctx, nil)
	if err != nil {
		return 0, err
	}
	mine := map[string]bool{}
	dirs.Each(func(d kadm.DescribedLogDir) {
		d.Topics.Each(func(p kadm.DescribedLogDirPartition) {
			if p.Topic == name || strings.HasPrefix(p.Topic, name+"-") {
				mine[p.Topic] = true
				size += p.Size
			}
		})
	})
	_, err = admin.DeleteTopics(ctx, slices.Collect(maps.Keys(mine))...)
	return size, err
}
