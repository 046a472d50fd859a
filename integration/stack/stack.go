package stack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
)

// The account that a connection string of Azurite names, and the key of all of its accounts.
const (
	AzuriteAccount = "devstoreaccount1"
	AzuriteKey     = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)

// AzuriteAccounts are those of an Azurite that is started here. An account has one feed, so each test that runs beside
// others takes an account.
var AzuriteAccounts = []string{AzuriteAccount, "devstoreaccount2", "devstoreaccount3", "devstoreaccount4"}

// host is where everything listens.
const host = "127.0.0.1"

// Options choose the components of a stack.
type Options struct {
	// Brokers is the number of Kafka nodes: 0, 1 or 3. Each is broker and controller. With three, everything is on all
	// of them, two of which must have a record before it counts.
	Brokers  int
	Registry bool
	Azurite  bool
	// Links is how many ways lead to the brokers besides the direct one: see Stack.Links.
	Links int

	// KafkaProperties are added to every node's server.properties. They win over what is there.
	KafkaProperties map[string]string
	// Secure adds listeners that want credentials: see Security.
	Secure bool
	// Throughput runs brokers as in production: 1 GiB of heap, G1, the full compiler. Slower to start, faster to run.
	Throughput bool
	// Dir is where the run's directory is made, which holds data and logs until Close. The default is in the cache.
	Dir string
}

// Stack is a set of endpoints. Its methods may be called from several goroutines; Close comes last.
type Stack struct {
	KafkaBrokers          []string // of node 0, 1, 2
	SchemaRegistryURL     string   // of the API that is compatible with Confluent's
	AzureConnectionString string
	Security              *Security // with Options.Secure
	// Links are for tests that stand between a client and the brokers: link by link, node 0, 1, 2. A client whose seed
	// brokers are the Addresses of a link is told of no other addresses. Nobody listens there: the test does, and
	// passes on to Target.
	Links [][]Link

	opt   Options
	cache string
	dir   string
	lock  *os.File // held while dir is in use
	nodes []*node
	logf  func(string, ...any)

	mu     sync.Mutex // guards what follows, and proc and paused of nodes
	procs  []*proc
	closed bool
}

// Link is a listener of a broker that advertises another address.
type Link struct {
	Name    string // of the listener
	Target  string // where the broker listens
	Address string // where clients are sent
}

// Start starts a stack and returns when all of it answers. Logf may be nil.
func Start(ctx context.Context, o Options, logf func(string, ...any)) (_ *Stack, err error) {
	if logf == nil {
		logf = func(string, ...any) {}
	}
	if o.Brokers != 0 && o.Brokers != 1 && o.Brokers != 3 {
		return nil, fmt.Errorf("starting a stack: %d Kafka nodes, want 0, 1 or 3", o.Brokers)
	}
	s := &Stack{opt: o, logf: logf}
	var starts []func(context.Context) error
	if o.Brokers > 0 {
		starts = append(starts, s.startKafka)
	}
	if o.Registry {
		starts = append(starts, s.startRegistry)
	}
	if o.Azurite {
		starts = append(starts, s.startAzurite)
	}
	if len(starts) == 0 {
		return s, nil
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	if s.cache, err = resolve(ctx, o, logf); err != nil {
		return nil, err
	}
	if o.Dir == "" {
		o.Dir = filepath.Join(s.cache, "runs")
	}
	if err = s.claimDir(o.Dir); err != nil {
		return nil, err
	}
	// What fails first stops the others.
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	for _, start := range starts {
		wg.Go(func() {
			if err := start(ctx); err != nil {
				cancel(err)
			}
		})
	}
	wg.Wait()
	if err = context.Cause(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// Close stops what was started and removes its data. It does nothing to what the environment named, nor when called
// again.
func (s *Stack) Close() error {
	s.mu.Lock()
	procs := s.procs
	s.procs, s.closed = nil, true
	s.mu.Unlock()
	var wg sync.WaitGroup
	for _, p := range procs {
		wg.Go(func() { s.end(p) })
	}
	wg.Wait()
	if s.dir == "" {
		return nil
	}
	err := errors.Join(os.RemoveAll(s.dir), s.lock.Close())
	s.dir = ""
	return err
}

// end kills a process, since its data goes too; but one that writes a class archive at its end is given the time.
func (s *Stack) end(p *proc) {
	if p.archive == "" || !p.running() {
		p.kill()
		return
	}
	if p.stop() {
		// The archive only makes starts quicker. Another run may have been first.
		_ = os.Rename(p.archive, filepath.Join(s.cache, filepath.Base(p.archive)))
	}
}
