package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"blobfeed/integration/stack"
	"blobfeed/internal/ops"
)

// sampled is how often the metrics of the program are read. Each time takes about 1 ms of its CPU.
const sampled = 100 * time.Millisecond

// instance is a process of the program.
type instance struct {
	cmd     *exec.Cmd
	address string
	out     *bytes.Buffer
	ended   chan error
}

// start starts what command has prepared.
func start(cmd *exec.Cmd, out *bytes.Buffer) (*instance, error) {
	address, err := stack.FreeAddress()
	if err != nil {
		return nil, err
	}
	i := &instance{cmd: cmd, address: address, out: out, ended: make(chan error, 1)}
	i.cmd.Env = append(i.cmd.Env, "BRIDGE_HTTP_ADDR="+address, "GODEBUG=gctrace=1")
	if err := i.cmd.Start(); err != nil {
		return nil, err
	}
	go func() { i.ended <- i.cmd.Wait() }()
	return i, nil
}

// plain asks for answers that are not compressed: ten times a second, gzip would be measured, too.
var plain = &http.Client{Transport: &http.Transport{DisableCompression: true}}

// counters returns the metrics of the instance, each summed over its labels: none before it listens.
func (i *instance) counters() map[string]float64 {
	sums := map[string]float64{}
	answer, err := plain.Get("http://" + i.address + "/metrics")
	if err != nil {
		return sums
	}
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	for lines.Scan() {
		series, value, _ := strings.Cut(lines.Text(), " ")
		if n, err := strconv.ParseFloat(value, 64); err == nil {
			name, _, _ := strings.Cut(series, "{")
			sums[strings.TrimPrefix(name, ops.Namespace+"_")] += n
		}
	}
	return sums
}

// progress is what instances have done together.
type progress struct{ events, segments, requests, transactions float64 }

// patience is how long instances may deliver nothing. Beside much other load, one waited without end for a count.
const patience = time.Minute

// await returns when instances have delivered a feed.
func await(ctx context.Context, instances []*instance, events, segments int) (done progress, err error) {
	tick := time.NewTicker(sampled)
	defer tick.Stop()
	var before float64
	moved := time.Now()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return done, ctx.Err()
		}
		done = progress{}
		for _, i := range instances {
			select {
			case err := <-i.ended:
				return done, fmt.Errorf("running the program: it ended early: %w:\n%s", err, i.out)
			default:
			}
			c := i.counters()
			done.events += c["events_read_total"]
			done.segments += c["segments_completed_total"]
			done.requests += c["azure_requests_total"]
			done.transactions += c["transactions_total"]
		}
		if int(done.events) >= events && int(done.segments) >= segments {
			return done, nil
		}
		if sum := done.events + done.segments; sum > before {
			before, moved = sum, time.Now()
		} else if time.Since(moved) > patience {
			_, err := instances[0].stop()
			return done, errors.Join(fmt.Errorf("nothing was delivered for %s, after %.0f events of %d and %.0f "+
				"segments of %d:\n%s", patience, done.events, events, done.segments, segments, instances[0].out), err)
		}
	}
}

// stop ends the instance and returns its CPU time.
func (i *instance) stop() (time.Duration, error) {
	if err := i.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return 0, err
	}
	if err := <-i.ended; err != nil {
		return 0, fmt.Errorf("stopping the program: %w:\n%s", err, i.out)
	}
	return i.cmd.ProcessState.UserTime() + i.cmd.ProcessState.SystemTime(), nil
}

// A line of the Go runtime has the CPU of a collection: of pauses, of allocations that helped, of the collector, and of
// the collector while there was nothing else to do, which is not counted.
var collection = regexp.MustCompile(`(?m)^gc \d+ @.* clock, ([\d.]+)\+([\d.]+)/([\d.]+)/[\d.]+\+([\d.]+) ms cpu`)

// collecting returns the CPU time that collecting garbage has taken, of an instance that has ended.
func (i *instance) collecting() (sum time.Duration) {
	for _, line := range collection.FindAllSubmatch(i.out.Bytes(), -1) {
		for _, part := range line[1:] {
			ms, _ := strconv.ParseFloat(string(part), 64)
			sum += time.Duration(ms * float64(time.Millisecond))
		}
	}
	return sum
}

// deliver delivers a feed once with the program, and deletes its topics. More settings win over those of the load.
func (l load) deliver(ctx context.Context, s *cluster, program, variant, feed string, more ...string) (c cost,
	err error) {
	name := fmt.Sprintf("bench-%d", time.Now().UnixNano())
	set := append(l.settings(name), more...)
	before, err := s.BrokerCPU()
	if err != nil {
		return c, err
	}
	ctx, cancel := context.WithCancel(ctx) // it kills what an error leaves
	defer cancel()
	began := time.Now()
	var instances []*instance
	for range l.instances {
		i, err := start(command(ctx, program, name, variant, feed, s.brokers(l), set...))
		if err != nil {
			return c, err
		}
		instances = append(instances, i)
	}
	done, err := await(ctx, instances, l.events(), l.segments)
	if err != nil {
		return c, err
	}
	took := time.Since(began)
	after, err := s.BrokerCPU()
	if err != nil {
		return c, err
	}
	var cpu, collecting time.Duration
	for _, i := range instances {
		c.peak = max(c.peak, largestResident(i.cmd.Process.Pid))
		used, stopErr := i.stop()
		cpu += used
		collecting += i.collecting()
		err = errors.Join(err, stopErr)
	}
	if *verified {
		verify, out := command(ctx, program, name, variant, feed, s.brokers(l), set...)
		verify.Args = []string{program, "verify", "--feed"}
		began := time.Now()
		if runErr := verify.Run(); runErr != nil {
			err = errors.Join(err, fmt.Errorf("verifying the delivery: %w:\n%s", runErr, out))
		}
		fmt.Printf("verify --feed took %.1f s\n", time.Since(began).Seconds())
	}
	size, sizeErr := sizeAndDelete(ctx, s.KafkaBrokers, name)
	events := float64(l.events())
	c.perSecond = events / took.Seconds()
	c.micros, c.broker = float64(cpu.Microseconds())/events, float64((after-before).Microseconds())/events
	c.collecting = collecting.Seconds() / cpu.Seconds()
	c.disk, c.requests, c.transactions = float64(size)/events, done.requests/events, done.transactions/events
	return c, errors.Join(err, sizeErr)
}
