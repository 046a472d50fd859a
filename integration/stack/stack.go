package stack

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
)

// The emulator's well-known account.
const (
	AzuriteAccount = "devstoreaccount1"
	AzuriteKey     = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)

// Options choose the components of a stack.
type Options struct {
	Brokers  int // Kafka nodes: 0, 1 or 3
	Registry bool
	Azurite  bool
	// Throughput gives brokers more heap and the full compiler: slower to start, faster to run.
	Throughput bool
}

// Stack is a set of endpoints.
type Stack struct {
	KafkaBrokers          []string
	SchemaRegistryURL     string
	AzureConnectionString string

	opt     Options
	cache   string
	dir     string
	lock    *os.File
	brokers []*broker
	mu      sync.Mutex
	procs   []*proc
}

// Get returns the stack that the environment names, and starts what it does not. Logf may be nil.
func Get(ctx context.Context, logf func(string, ...any)) (*Stack, error) {
	var brokers []string
	if b := os.Getenv("KAFKA_BROKERS"); b != "" {
		brokers = strings.Split(b, ",")
	}
	registry, azurite := os.Getenv("SCHEMA_REGISTRY_URL"), os.Getenv("AZURE_STORAGE_CONNECTION_STRING")
	o := Options{Registry: registry == "", Azurite: azurite == ""}
	if brokers == nil {
		o.Brokers = 1
	}
	s, err := Start(ctx, o, logf)
	if err != nil {
		return nil, err
	}
	if brokers != nil {
		s.KafkaBrokers = brokers
	}
	if registry != "" {
		s.SchemaRegistryURL = registry
	}
	if azurite != "" {
		s.AzureConnectionString = azurite
	}
	return s, nil
}

// Env returns the endpoints as Get reads them.
func (s *Stack) Env() []string {
	return []string{
		"KAFKA_BROKERS=" + strings.Join(s.KafkaBrokers, ","),
		"SCHEMA_REGISTRY_URL=" + s.SchemaRegistryURL,
		"AZURE_STORAGE_CONNECTION_STRING=" + s.AzureConnectionString,
	}
}

// Start starts a stack and returns when all of it answers. Logf may be nil.
func Start(ctx context.Context, o Options, logf func(string, ...any)) (_ *Stack, err error) {
	if logf == nil {
		logf = func(string, ...any) {}
	}
	s := &Stack{opt: o}
	if o.Brokers == 0 && !o.Registry && !o.Azurite {
		return s, nil
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	if s.cache, err = resolve(ctx, logf); err != nil {
		return nil, err
	}
	if err = s.claimDir(filepath.Join(s.cache, "runs")); err != nil {
		return nil, err
	}
	starts := []func(context.Context) error{}
	if o.Brokers > 0 {
		starts = append(starts, s.startKafka)
	}
	if o.Registry {
		starts = append(starts, s.startRegistry)
	}
	if o.Azurite {
		starts = append(starts, s.startAzurite)
	}
	errs := make([]error, len(starts))
	var wg sync.WaitGroup
	for i, start := range starts { // side by side
		wg.Go(func() { errs[i] = start(ctx) })
	}
	wg.Wait()
	return s, errors.Join(errs...)
}

// Close stops what was started and removes its data. It does nothing to what the environment named.
func (s *Stack) Close() error {
	var wg sync.WaitGroup
	for _, p := range s.procs {
		wg.Go(func() {
			p.stop()
			// The class archive that this run wrote at its end makes the next start quicker. Mostly there is none.
			_ = os.Rename(filepath.Join(s.dir, p.name+".jsa"), filepath.Join(s.cache, p.name+".jsa"))
		})
	}
	wg.Wait()
	s.procs = nil
	if s.dir == "" {
		return nil
	}
	return errors.Join(os.RemoveAll(s.dir), s.lock.Close())
}

// claimDir makes the run directory and holds a lock on it. Directories nobody holds were left by killed runs: they go.
func (s *Stack) claimDir(runs string) error {
	if err := os.MkdirAll(runs, 0o755); err != nil {
		return fmt.Errorf("making the run directory: %w", err)
	}
	all, err := os.Open(runs) // its lock keeps another process from sweeping a directory before it is claimed
	if err != nil {
		return fmt.Errorf("making the run directory: %w", err)
	}
	defer all.Close()
	if err := syscall.Flock(int(all.Fd()), syscall.LOCK_EX); err != nil {
		return fmt.Errorf("locking %s: %w", runs, err)
	}
	old, err := os.ReadDir(runs)
	if err != nil {
		return fmt.Errorf("sweeping old runs: %w", err)
	}
	for _, e := range old {
		d, err := os.Open(filepath.Join(runs, e.Name()))
		if err != nil {
			continue // its own process has removed it
		}
		if syscall.Flock(int(d.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			err = os.RemoveAll(d.Name())
		}
		if err := errors.Join(err, d.Close()); err != nil {
			return fmt.Errorf("sweeping old runs: %w", err)
		}
	}
	if s.dir, err = os.MkdirTemp(runs, ""); err != nil {
		return fmt.Errorf("making the run directory: %w", err)
	}
	if s.lock, err = os.Open(s.dir); err != nil {
		return fmt.Errorf("locking the run directory: %w", err)
	}
	return syscall.Flock(int(s.lock.Fd()), syscall.LOCK_EX)
}

// freePorts asks the kernel for n ports. They are held until all are known, so they differ.
func freePorts(n int) ([]int, error) {
	var ports []int
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("finding a free port: %w", err)
		}
		defer l.Close()
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}
