package stack

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"text/template"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

//go:embed server.properties.tmpl
var serverProperties string

const clusterID = "4L6g3nShT-eMCtK--X86sw"

// broker is one node. Its data and ports stay the same over restarts.
type broker struct {
	ID, Port, ControllerPort int
	Voters, Data             string
	Replicas, MinISR         int

	props string
	proc  *proc
}

func (s *Stack) startKafka(ctx context.Context) error {
	n := s.opt.Brokers
	ports, err := freePorts(2 * n)
	if err != nil {
		return err
	}
	var voters []string
	for i := range n {
		voters = append(voters, fmt.Sprintf("%d@127.0.0.1:%d", i+1, ports[n+i]))
		s.KafkaBrokers = append(s.KafkaBrokers, fmt.Sprintf("127.0.0.1:%d", ports[i]))
	}
	tmpl, err := template.New("").Parse(serverProperties)
	if err != nil {
		return fmt.Errorf("parsing the broker's settings: %w", err)
	}
	for i := range n {
		b := &broker{
			ID: i + 1, Port: ports[i], ControllerPort: ports[n+i], Voters: strings.Join(voters, ","),
			Data: filepath.Join(s.dir, fmt.Sprintf("kafka-%d", i+1)), Replicas: n, MinISR: n/2 + 1,
			props: filepath.Join(s.dir, fmt.Sprintf("kafka-%d.properties", i+1)),
		}
		var text bytes.Buffer
		if err := tmpl.Execute(&text, b); err != nil {
			return fmt.Errorf("writing the broker's settings: %w", err)
		}
		if err := os.WriteFile(b.props, text.Bytes(), 0o600); err != nil {
			return fmt.Errorf("writing the broker's settings: %w", err)
		}
		s.brokers = append(s.brokers, b)
	}
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i, b := range s.brokers {
		wg.Go(func() {
			format := exec.CommandContext(ctx, "java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx128m", "-Dlog4j2.level=ERROR", "-cp", s.kafkaLibs(),
				"kafka.tools.StorageTool", "format", "--cluster-id", clusterID, "--config", b.props)
			if out, err := format.CombinedOutput(); err != nil {
				errs[i] = fmt.Errorf("formatting a broker's directory: %w\n%s", err, out)
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	for i := range s.brokers {
		wg.Go(func() { errs[i] = s.StartBroker(ctx, i) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

func (s *Stack) kafkaLibs() string { return filepath.Join(s.cache, "kafka", "libs", "*") }

// StartBroker starts node i, 0 to n-1, and returns when every running node is known to it.
func (s *Stack) StartBroker(ctx context.Context, i int) error {
	b := s.brokers[i]
	args := []string{"-Xms256m", "-Xmx256m"}
	if s.opt.Throughput {
		args = []string{"-Xms1g", "-Xmx1g"}
	}
	args = s.jvm("kafka", append(args, "-Dlog4j2.level=INFO", "-cp", s.kafkaLibs(), "kafka.Kafka", b.props)...)
	p, err := s.spawn("kafka", "java", args...)
	if err != nil {
		return err
	}
	b.proc = p
	return p.await(ctx, func(ctx context.Context) error {
		cl, err := kgo.NewClient(kgo.SeedBrokers(s.KafkaBrokers[i]))
		if err != nil {
			return err
		}
		defer cl.Close()
		m, err := kadm.NewClient(cl).BrokerMetadata(ctx)
		if err != nil {
			return err
		}
		for _, known := range m.Brokers {
			if int(known.NodeID) == b.ID && (s.restarted() || len(m.Brokers) == len(s.brokers)) {
				return nil
			}
		}
		return fmt.Errorf("%d of %d brokers are registered", len(m.Brokers), len(s.brokers))
	})
}

// restarted reports whether some node is down, or was: then the others need not wait for all.
func (s *Stack) restarted() bool {
	for _, b := range s.brokers {
		if b.proc != nil && !b.proc.running() {
			return true
		}
	}
	return false
}

// KillBroker ends node i as a crash does.
func (s *Stack) KillBroker(i int) { s.brokers[i].proc.kill() }

// StopBroker ends node i in order.
func (s *Stack) StopBroker(i int) { s.brokers[i].proc.stop() }

// PauseBroker stops node i where it is; ResumeBroker lets it go on.
func (s *Stack) PauseBroker(i int) error {
	return s.brokers[i].proc.cmd.Process.Signal(syscall.SIGSTOP)
}

// ResumeBroker undoes PauseBroker.
func (s *Stack) ResumeBroker(i int) error {
	return s.brokers[i].proc.cmd.Process.Signal(syscall.SIGCONT)
}

// jvm returns options that make Java start quickly, and args.
func (s *Stack) jvm(name string, args ...string) []string {
	fast := []string{"-XX:+UseSerialGC"}
	if s.opt.Throughput {
		return append(fast, args...)
	}
	archive := filepath.Join(s.cache, name+".jsa")
	if _, err := os.Stat(archive); err == nil {
		fast = append(fast, "-XX:SharedArchiveFile="+archive)
	} else if s.opt.Brokers <= 1 { // three would write one file
		fast = append(fast, "-XX:ArchiveClassesAtExit="+filepath.Join(s.dir, name+".jsa")) // Close moves it to the cache
	}
	return append(append(fast, "-XX:TieredStopAtLevel=1"), args...)
}
