package stack

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// clusterID is any UUID in base64.
const clusterID = "4L6g3nShT-eMCtK--X86sw"

// node is a broker and controller. Its data and ports stay the same over restarts.
type node struct {
	index int // in Stack.nodes and KafkaBrokers
	id    int // in Kafka: index + 1
	addr  string
	props string // path of server.properties

	proc   *proc // nil until it is started
	paused bool
}

// startKafka formats and starts all nodes.
func (s *Stack) startKafka(ctx context.Context) error {
	n := s.opt.Brokers
	secure := len(secureListeners) * n
	free, err := freePorts(2*n + secure + 2*n*s.opt.Links)
	if err != nil {
		return err
	}
	if s.opt.Secure {
		if err := s.makeKeys(); err != nil {
			return err
		}
	}
	var voters, brokers []string
	for i := range n {
		voters = append(voters, fmt.Sprintf("%d@%s", i+1, address(free[n+i])))
		brokers = append(brokers, address(free[i]))
	}
	extra := free[2*n+secure:]
	s.Links = make([][]Link, s.opt.Links)
	for k := range s.Links {
		for range n {
			s.Links[k] = append(s.Links[k], Link{Name: fmt.Sprintf("LINK%d", k), Target: address(extra[0]),
				Address: address(extra[1])})
			extra = extra[2:]
		}
	}
	var nodes []*node
	for i := range n {
		v := settings{
			ID: i + 1, Port: free[i], ControllerPort: free[n+i], Voters: strings.Join(voters, ","),
			Data: filepath.Join(s.dir, fmt.Sprintf("kafka-%d", i)), Replicas: n, MinISR: n/2 + 1, BrokerSession: 2000,
		}
		if n > 1 {
			v.BrokerSession = 3000
		}
		for _, l := range s.Links {
			v.Links = append(v.Links, l[i])
		}
		properties := map[string]string{}
		if s.opt.Secure { // which sets the listeners, so links are not for it
			properties = s.secure(v, free[2*n+i*len(secureListeners):])
		}
		maps.Copy(properties, s.opt.KafkaProperties)
		text, err := v.render(properties)
		if err != nil {
			return err
		}
		props := filepath.Join(s.dir, fmt.Sprintf("kafka-%d.properties", i))
		if err := os.WriteFile(props, text, 0o600); err != nil {
			return fmt.Errorf("writing the broker's settings: %w", err)
		}
		nodes = append(nodes, &node{index: i, id: i + 1, addr: brokers[i], props: props})
	}
	s.KafkaBrokers, s.nodes = brokers, nodes
	if err := s.each(func(b *node) error { return s.format(ctx, b) }); err != nil {
		return err
	}
	// All are launched before one is awaited: it awaits those that run.
	for _, b := range nodes {
		if err := s.launch(b, true); err != nil {
			return err
		}
	}
	return s.each(func(b *node) error { return s.awaitNode(ctx, b) })
}

// each calls f for all nodes, side by side.
func (s *Stack) each(f func(*node) error) error {
	errs := make([]error, len(s.nodes))
	var wg sync.WaitGroup
	for i, b := range s.nodes {
		wg.Go(func() { errs[i] = f(b) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

func (s *Stack) format(ctx context.Context, b *node) error {
	if err := runTool(ctx, "java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx128m", "-Dlog4j2.level=ERROR",
		"-cp", s.kafkaLibs(),
		"kafka.tools.StorageTool", "format", "--cluster-id", clusterID, "--config", b.props); err != nil {
		return fmt.Errorf("formatting the directory of Kafka node %d: %w", b.index, err)
	}
	return nil
}

// launch starts the process of a node. Node 0 writes the class archive for later runs, if it is the first to.
func (s *Stack) launch(b *node, first bool) error {
	var args []string
	if s.opt.Throughput {
		args = []string{"-Xms1g", "-Xmx1g", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20"}
	} else {
		args = []string{"-Xms256m", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"}
	}
	archive := ""
	if !s.opt.Throughput { // an archive is for one garbage collector
		var flags []string
		flags, archive = s.classArchive("kafka", first && b.index == 0)
		args = append(args, flags...)
	}
	p, err := s.spawn(fmt.Sprintf("kafka-%d", b.index), archive, "java", append(args, "-Dlog4j2.level=INFO", "-cp",
		s.kafkaLibs(), "kafka.Kafka", b.props)...)
	if err != nil {
		return err
	}
	s.mu.Lock()
	b.proc, b.paused = p, false
	s.mu.Unlock()
	return nil
}

func (s *Stack) kafkaLibs() string { return filepath.Join(s.cache, "kafka", "libs", "*") }
