package stack

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// StartBroker starts node i again, 0 to n-1, on its old data and ports. It returns when the node knows every node that
// is up, or after two minutes. Without a majority of nodes no node gets ready: then start them side by side.
func (s *Stack) StartBroker(ctx context.Context, i int) error {
	b, p, err := s.node(i)
	if err != nil {
		return err
	}
	if p != nil && p.running() {
		return fmt.Errorf("starting Kafka node %d: it is running", i)
	}
	if err := s.launch(b, false); err != nil {
		return err
	}
	return s.awaitNode(ctx, b)
}

// KillBroker ends node i as a crash does (SIGKILL), and returns when it is gone.
func (s *Stack) KillBroker(i int) error {
	_, p, err := s.live(i)
	if err != nil {
		return err
	}
	p.kill()
	return nil
}

// StopBroker ends node i in order (SIGTERM), and returns when it is gone.
func (s *Stack) StopBroker(i int) error {
	_, p, err := s.live(i)
	if err != nil {
		return err
	}
	if !p.stop() {
		return fmt.Errorf("stopping Kafka node %d: it had to be killed after %s", i, stopTimeout)
	}
	return nil
}

// PauseBroker freezes node i (SIGSTOP): its connections stay open and nothing answers.
func (s *Stack) PauseBroker(i int) error { return s.setPaused(i, true) }

// ResumeBroker lets a paused node go on (SIGCONT).
func (s *Stack) ResumeBroker(i int) error { return s.setPaused(i, false) }

func (s *Stack) setPaused(i int, paused bool) error {
	b, p, err := s.live(i)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := pauseProcess(p.cmd.Process, paused); err != nil {
		return fmt.Errorf("pausing or resuming Kafka node %d: %w", i, err)
	}
	b.paused = paused
	return nil
}

// node returns a node of this stack and its last process.
func (s *Stack) node(i int) (*node, *proc, error) {
	if i < 0 || i >= len(s.nodes) {
		return nil, nil, fmt.Errorf("there is no Kafka node %d: this stack started %d", i, len(s.nodes))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.nodes[i], s.nodes[i].proc, nil
}

// live returns a node that runs.
func (s *Stack) live(i int) (*node, *proc, error) {
	b, p, err := s.node(i)
	if err == nil && (p == nil || !p.running()) {
		err = fmt.Errorf("kafka node %d is not running", i)
	}
	return b, p, err
}

// awaitNode returns when the node's own view of the cluster has every node that is up. Its port opens before the others
// are in, and internal topics can't be created until there are as many brokers as replicas.
func (s *Stack) awaitNode(ctx context.Context, b *node) error {
	s.mu.Lock()
	p := b.proc
	s.mu.Unlock()
	return p.await(ctx, func(ctx context.Context) error {
		cl, err := kgo.NewClient(kgo.SeedBrokers(b.addr))
		if err != nil {
			return err
		}
		defer cl.Close()
		m, err := kadm.NewClient(cl).BrokerMetadata(ctx)
		if err != nil {
			return err
		}
		known := map[int]bool{}
		for _, k := range m.Brokers {
			known[int(k.NodeID)] = true
		}
		for _, id := range s.up() {
			if !known[id] {
				return fmt.Errorf("broker %d is not registered yet", id)
			}
		}
		return nil
	})
}

// up returns the Kafka ids of nodes that run.
func (s *Stack) up() (ids []int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range s.nodes {
		if b.proc != nil && b.proc.running() && !b.paused {
			ids = append(ids, b.id)
		}
	}
	return ids
}

const (
	startTimeout = 2 * time.Minute
	stopTimeout  = 20 * time.Second
)
