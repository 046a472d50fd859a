package chaos

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/integration/stack"
	"blobfeed/internal/testing/feedsim"
	"blobfeed/internal/testing/feedsim/account"
)

// partitions of the topics.
const partitions = 6

// World is a bridge of several instances: its account with the feed, its topic, and ways to the brokers that can be
// cut.
type World struct {
	Topic    string
	stack    *stack.Stack
	feed     *feedsim.Feed
	files    *account.Files // of the feed
	account  *account.Account
	server   *httptest.Server
	clock    atomic.Int64 // of the account, in ns: within the feed's open segment
	storm    atomic.Int64 // until this time, in ns, each third request for storage fails
	requests atomic.Int64
	program  string
	dir      string
	env      []string // of all instances and verbs
	links    [][]*Link

	mu      sync.Mutex
	current map[int]*Instance // by slot
	all     []*Instance
	asked   map[*Instance]bool // to end
	verbs   int
}

// tuning are bounds of every instance.
const tuning = "BRIDGE_DEBUG=quiet_interval=1s,shutdown_timeout=5s,scan_round=300ms"

// NewWorld makes a topic, and an account with a feed, of which nothing is there yet. Logs go to dir. The stack needs a
// link for each instance.
func NewWorld(ctx context.Context, s *stack.Stack, program, dir, name string, spec feedsim.Spec,
	env ...string) (_ *World, err error) {
	w := &World{
		Topic: name + ".changes", stack: s, program: program, dir: dir, files: account.NewFiles(),
		current: map[int]*Instance{}, asked: map[*Instance]bool{},
	}
	w.account = account.New(w.now)
	if w.feed, err = feedsim.New(w.files, spec); err != nil {
		return nil, err
	}
	w.tick()
	w.server = httptest.NewServer(&account.Server{Account: w.account, Feed: w.files, Fault: w.fault})
	w.env = append([]string{
		"BRIDGE_NAME=" + name, "BRIDGE_TOPIC=" + w.Topic,
		"BRIDGE_SOURCE_URL=" + w.server.URL + "/" + stack.AzuriteAccount,
		"BRIDGE_SOURCE_AUTH=shared_key", "BRIDGE_SOURCE_ACCOUNT=" + stack.AzuriteAccount,
		"BRIDGE_SOURCE_KEY=" + stack.AzuriteKey, "BRIDGE_LOG_FORMAT=json",
		"BRIDGE_POLL_INTERVAL=300ms", "BRIDGE_COMMIT_INTERVAL=300ms", tuning,
		"BRIDGE_ON_GAP=continue",
		fmt.Sprintf("BRIDGE_SESSION_TIMEOUT=%s", session), fmt.Sprintf("BRIDGE_TXN_TIMEOUT=%s", txnTimeout),
	}, env...)
	defer func() {
		if err != nil {
			err = errors.Join(err, w.Close())
		}
	}()
	cl, err := kgo.NewClient(kgo.SeedBrokers(s.KafkaBrokers...), kgo.MetadataMinAge(metadataAge))
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	// Records have the times of their events, so the brokers would remove them at once.
	if _, err := kadm.NewClient(cl).CreateTopic(ctx, partitions, -1, map[string]*string{"retention.ms": new("-1")},
		w.Topic); err != nil {
		return nil, fmt.Errorf("creating the topic of a world: %w", err)
	}
	for _, way := range s.Links {
		w.links = append(w.links, nil)
		for _, to := range way {
			l, err := NewLink(to.Address, to.Target)
			if err != nil {
				return nil, err
			}
			w.links[len(w.links)-1] = append(w.links[len(w.links)-1], l)
		}
	}
	return w, nil
}

// Close kills what runs.
func (w *World) Close() (err error) {
	for _, i := range w.running() {
		w.leave(i)
		i.Kill()
	}
	for _, way := range w.links {
		for _, l := range way {
			err = errors.Join(err, l.Close())
		}
	}
	w.links = nil
	w.server.Close()
	return err
}

// Start starts an instance in a slot that is free.
func (w *World) Start(slot int, env ...string) (*Instance, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.current[slot] != nil {
		return nil, fmt.Errorf("starting an instance: slot %d is taken", slot)
	}
	var seeds []string
	for _, to := range w.stack.Links[slot] {
		seeds = append(seeds, to.Address)
	}
	name := fmt.Sprintf("i%d-%d", slot, len(w.all))
	settings := append(append(append([]string{}, w.env...), "BRIDGE_INSTANCE="+name,
		"BRIDGE_KAFKA_BROKERS="+strings.Join(seeds, ",")), env...)
	i, err := Launch(w.program, filepath.Join(w.dir, name+".log"), []string{"run"}, settings...)
	if err != nil {
		return nil, err
	}
	i.Name, i.slot = name, slot
	w.current[slot] = i
	w.all = append(w.all, i)
	return i, nil
}

// Running returns the instance in a slot, or nil.
func (w *World) Running(slot int) *Instance {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.current[slot]
}

func (w *World) running() (all []*Instance) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, i := range w.current {
		all = append(all, i)
	}
	return all
}

// leave says that an instance is about to end.
func (w *World) leave(i *Instance) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.current, i.slot)
	w.asked[i] = true
}

// Deserters are instances that ended though nobody asked them to.
func (w *World) Deserters() (failures []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, i := range w.all {
		select {
		case <-i.done:
			if !w.asked[i] {
				failures = append(failures, fmt.Sprintf("%s ended by itself, %v:\n%s", i.Name, i.cmd.ProcessState,
					i.tail()))
			}
		default:
		}
	}
	return failures
}

// Cut sets the mode of the links between an instance and a broker, or, with -1, all.
func (w *World) Cut(slot, broker int, m Mode) {
	for b, l := range w.links[slot] {
		if broker < 0 || broker == b {
			l.Set(m)
		}
	}
}
