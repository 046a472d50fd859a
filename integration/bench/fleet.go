package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/integration/stack"
	"blobfeed/internal/ops"
	"blobfeed/internal/pause"
	"blobfeed/internal/testing/feedsim"
)

const (
	fleetAddress = "127.0.0.1:18080"
	idleTime     = time.Minute
	probes       = 20 // events of the account whose delay is measured
)

// manyAccounts measures one process with many idle accounts, and then what an account with a large feed costs another
// one that gets an event each second.
func manyAccounts(ctx context.Context, accounts, events, brokers int) error {
	root, programs, err := prepare(nil)
	defer os.RemoveAll(root)
	if err != nil {
		return err
	}
	probed, err := writeAccounts(ctx, root, accounts, events)
	if err != nil {
		return err
	}
	addresses, stop, err := kafkaOf(ctx, brokers)
	if err != nil {
		return err
	}
	defer stop()
	file := filepath.Join(root, "fleet.yaml")
	if err := os.WriteFile(file, fleetSettings(root, addresses, accounts, false), 0o600); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, programs[0], "run", "--config", file)
	var log bytes.Buffer
	cmd.Stderr = &log
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return err
	}
	starting, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ended := make(chan error, 1)
	go func() {
		err := cmd.Wait()
		cancel(errors.New("the program has ended"))
		ended <- err
	}()
	defer func() { _ = cmd.Process.Kill() }() // unless it has ended
	if err := awaitFleet(starting, accounts+1); err != nil {
		return fmt.Errorf("%w: %.2000s", err, &log)
	}
	fmt.Printf("%d accounts are up to date after %.0f s\n", accounts, time.Since(began).Seconds())
	if err := idleCost(ctx, cmd.Process.Pid); err != nil {
		return err
	}
	alone, err := delays(ctx, addresses, probed)
	if err != nil {
		return err
	}
	fmt.Printf("an event of one account reaches its topic after %s\n", alone)
	if err := os.WriteFile(file, fleetSettings(root, addresses, accounts, true), 0o600); err != nil {
		return err
	}
	if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
		return err
	}
	beside, err := delays(ctx, addresses, probed)
	if err != nil {
		return err
	}
	delivered := noisyEvents()
	fmt.Printf("beside an account that catches up (%d of %d events at the end), after %s\n", delivered, events, beside)
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	stopping := time.Now()
	if err := <-ended; err != nil {
		return fmt.Errorf("stopping: %w: %.2000s", err, &log)
	}
	fmt.Printf("the stop took %.1f s\n", time.Since(stopping).Seconds())
	return nil
}

// kafkaOf starts Kafka with a number of nodes; 0 starts a broker in this process.
func kafkaOf(ctx context.Context, nodes int) (addresses []string, stop func(), err error) {
	if nodes == 0 {
		c, err := kfake.NewCluster(kfake.NumBrokers(1))
		if err != nil {
			return nil, nil, err
		}
		return c.ListenAddrs(), c.Close, nil
	}
	s, err := stack.Start(ctx, stack.Options{Brokers: nodes}, nil)
	if err != nil {
		return nil, nil, err
	}
	return s.KafkaBrokers, func() { _ = s.Close() }, nil
}

// writeAccounts writes feeds with an open segment of a few events, one of them to append to, and a large feed.
func writeAccounts(ctx context.Context, root string, accounts, events int) (probed *feedsim.Feed, err error) {
	for i := range accounts + 1 {
		spec := feedsim.Spec{
			Seed: uint64(i), Account: fmt.Sprint("account", i), Shards: 1, EventsPerSegment: 10, Blobs: 10,
			Start: time.Now().UTC().Truncate(time.Hour).Add(-time.Hour),
		}
		probed, err = feedsim.New(feedsim.Dir(filepath.Join(root, spec.Account)), spec)
		if err != nil {
			return nil, err
		}
		err = errors.Join(probed.Open(ctx), probed.Append(ctx, 10, nil), probed.Next(ctx), probed.Append(ctx, 10, nil))
		if err != nil {
			return nil, err
		}
	}
	spec := feedsim.Spec{
		Seed: 1, Account: "noisy", Shards: 8, EventsPerSegment: events, Blobs: 50_000, Versions: []int{5},
	}
	return probed, feedsim.Write(ctx, feedsim.Dir(filepath.Join(root, "noisy")), spec, nil)
}

const probeTopic = "probe"

func fleetSettings(root string, brokers []string, accounts int, noisy bool) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "kafka_brokers: ['%s']\nhttp_addr: '%s'\noffsets_leases: 1\ntopic_partitions: 1\nbridges:\n",
		strings.Join(brokers, "','"), fleetAddress)
	for i := range accounts {
		fmt.Fprintf(&b, "  account%d: {source_url: 'file://%s/account%[1]d', topic: changes%[1]d}\n", i, root)
	}
	fmt.Fprintf(&b, "  probe: {source_url: 'file://%s/account%d', topic: %s, poll_interval: 100ms}\n",
		root, accounts, probeTopic)
	if noisy {
		fmt.Fprintf(&b, "  noisy: {source_url: 'file://%s/noisy', topic: noisy, offsets_leases: 8}\n", root)
	}
	return b.Bytes()
}

// fleetStatus returns what the process lists.
func fleetStatus() (s ops.FleetStatus, err error) {
	answer, err := http.Get("http://" + fleetAddress + "/status")
	if err != nil {
		return s, err
	}
	defer answer.Body.Close()
	return s, json.NewDecoder(answer.Body).Decode(&s)
}

func awaitFleet(ctx context.Context, bridges int) error {
	ctx, cancel := context.WithTimeoutCause(ctx, 5*time.Minute, errors.New("the bridges are not up to date in time"))
	defer cancel()
	t := time.NewTicker(time.Second)
	defer t.Stop()
	for {
		done := 0
		s, err := fleetStatus()
		for _, b := range s.Bridges {
			if b.Events == 20 && b.Verdict.Code == "up_to_date" {
				done++
			}
		}
		if err == nil && done == bridges {
			return nil
		}
		select {
		case <-t.C:
		case <-ctx.Done():
			return fmt.Errorf("%d of %d: %w", done, bridges, context.Cause(ctx))
		}
	}
}

func noisyEvents() int {
	s, err := fleetStatus()
	if err != nil {
		return 0
	}
	for _, b := range s.Bridges {
		if b.Name == "noisy" {
			return b.Events
		}
	}
	return 0
}

// idleCost prints what the process takes while nothing happens.
func idleCost(ctx context.Context, pid int) error {
	if err := pause.For(ctx, idleTime); err != nil { // what the start has left is given back by then
		return err
	}
	before, err := stack.CPUOf(pid)
	if err != nil {
		return err
	}
	if err := pause.For(ctx, idleTime); err != nil {
		return err
	}
	after, err := stack.CPUOf(pid)
	if err != nil {
		return err
	}
	resident, err := stack.ResidentOf(pid)
	if err != nil {
		return err
	}
	fmt.Printf("idle: %.3f cores, %.0f MB resident (largest %.0f MB)\n",
		(after-before).Seconds()/idleTime.Seconds(), resident/1e6, largestResident(pid)/1e6)
	return nil
}

// spread are the median and the largest of delays.
type spread struct{ median, largest float64 }

func (s spread) String() string { return fmt.Sprintf("%.2f s (largest %.2f s)", s.median, s.largest) }

// delays appends an event to a feed each second, and returns how long each takes to its topic.
func delays(ctx context.Context, brokers []string, feed *feedsim.Feed) (s spread, err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	cl, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.ConsumeTopics(probeTopic),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.ConsumeResetOffset(kgo.NewOffset().AtEnd()))
	if err != nil {
		return s, err
	}
	defer cl.Close()
	var took []float64
	t := time.NewTicker(time.Second)
	defer t.Stop()
	<-t.C
	for range probes {
		began := time.Now()
		if err := feed.Append(ctx, 5, nil); err != nil { // some of which change no blob
			return s, err
		}
		if fs := cl.PollFetches(ctx); fs.Err() != nil {
			return s, fs.Err()
		}
		took = append(took, time.Since(began).Seconds())
		s.largest = max(s.largest, took[len(took)-1])
		<-t.C
	}
	s.median = median(took)
	return s, nil
}
