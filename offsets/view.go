package offsets

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/internal/plain"
)

// View follows all partitions of the offsets topic, read_committed: the shared memory of all instances.
type View struct {
	topic string
	// Trouble hears of errors that the view survives. It may be nil, and is set before Run.
	Trouble func(error)
	// Frugal makes a fetch that finds nothing new wait for longer, and is set before Run. What is new ends the wait.
	Frugal bool

	mu      sync.Mutex
	state   *State
	tails   []unended // by lease
	err     error
	changed chan struct{} // closed and replaced with every change
}

// NewView returns the view of a topic with a number of partitions. It knows nothing until Run reads.
func NewView(topic string, partitions int) *View {
	return &View{
		topic: topic,
		tails: make([]unended, partitions),
		state: &State{
			Cursors: make([]*Cursor, partitions), Owners: make([]string, partitions),
			written: make([]*Cursor, partitions), terms: make([]int64, partitions), stale: make([]int64, partitions),
			torn: make([]*torn, partitions), next: make([]int64, partitions),
		},
		changed: make(chan struct{}),
	}
}

// Run reads the topic until ctx ends. It returns nil then, and an error for a document it can't read: going on
// without it would mean to start over.
func (v *View) Run(ctx context.Context, opts ...kgo.Opt) error {
	offsets := map[int32]kgo.Offset{}
	for p := range v.state.next {
		offsets[int32(p)] = kgo.NewOffset().AtStart()
	}
	cl, err := kgo.NewClient(append(
		slices.Clone(opts),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{v.topic: offsets}),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		// The client takes the leader epoch of its position from the last record that it hands out. Were the ends of
		// transactions not handed out, one written by a new leader would leave the position ahead of what the old epoch
		// holds, and the next change of leaders would look like lost records.
		kgo.KeepControlRecords(),
		// Without it Close asks each broker to end its session, and waits ten seconds for one that does not answer.
		kgo.WithContext(ctx),
		kgo.FetchMaxWait(v.fetchWait()),
	)...)
	if err != nil {
		return fmt.Errorf("creating the reader of %s: %w", v.topic, err)
	}
	defer cl.Close()
	for {
		fs := cl.PollFetches(ctx)
		if ctx.Err() != nil {
			return nil
		}
		var fetchErr error // of one partition: each has the same
		fs.EachError(func(_ string, p int32, err error) {
			// Most errors that kgo repeats by itself never get here. What brokers answer does (authorization, data
			// loss), and is worth stopping for. So does a connection that can't be made, and is not: it is tried again.
			err = fmt.Errorf("reading partition %d of %s: %w", p, v.topic, err)
			if unconnected(err) {
				if v.Trouble != nil {
					v.Trouble(err)
				}
				return
			}
			if errors.Is(err, kerr.UnknownTopicID) || errors.Is(err, kerr.UnknownTopicOrPartition) {
				err = plain.WithRemedy(
					fmt.Errorf("%w: the topic was deleted while the bridge ran, and with it all progress", err),
					"stop all instances, then run bridge seek --to <time> --yes, which creates the topic again")
			}
			fetchErr = cmp.Or(fetchErr, err)
		})
		if fetchErr != nil {
			return v.fail(fetchErr)
		}
		var applyErr error
		fs.EachPartition(func(ftp kgo.FetchTopicPartition) {
			if applyErr == nil && len(ftp.Records) > 0 {
				applyErr = v.apply(ftp.Records...)
			}
		})
		if applyErr != nil {
			return v.fail(applyErr)
		}
	}
}

// unconnected reports whether err is of a connection to a broker, not an answer of one about a topic, nor about what it
// holds. A broker may be restarted, a certificate or a password be replaced, and a server of tokens be down: nothing of
// that says that another attempt fails, too.
func unconnected(err error) bool {
	var broken net.Error
	var first *kgo.ErrFirstReadEOF
	var untrusted *tls.CertificateVerificationError
	return errors.As(err, &broken) || errors.As(err, &first) || errors.As(err, &untrusted) ||
		errors.Is(err, kerr.SaslAuthenticationFailed) || errors.Is(err, kerr.UnsupportedSaslMechanism) ||
		errors.Is(err, kerr.IllegalSaslState)
}

func (v *View) fetchWait() time.Duration {
	if v.Frugal {
		return 5 * time.Second // brokers that say nothing for 10 s are reported
	}
	return 500 * time.Millisecond
}

func (v *View) fail(err error) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.err = err
	v.broadcast()
	return err
}

// apply takes committed records of one partition, in offset order.
func (v *View) apply(records ...*kgo.Record) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	s := *v.state
	s.Cursors, s.Owners, s.next = slices.Clone(s.Cursors), slices.Clone(s.Owners), slices.Clone(s.next)
	s.written, s.terms, s.torn = slices.Clone(s.written), slices.Clone(s.terms), slices.Clone(s.torn)
	s.stale = slices.Clone(s.stale)
	for _, r := range records {
		if r.Offset < s.next[r.Partition] {
			continue
		}
		v.tails[r.Partition].follow(&s, r)
		if err := s.apply(r); err != nil {
			return fmt.Errorf("partition %d, offset %d: %w", r.Partition, r.Offset, err)
		}
		s.next[r.Partition] = r.Offset + 1
	}
	for p, c := range s.written {
		switch {
		case c == nil || c.Epoch < s.born:
			s.Cursors[p] = nil
		case c.Epoch < s.Epoch:
			s.Cursors[p] = c.void(s.Epoch)
		default:
			s.Cursors[p] = c
		}
	}
	v.state = &s
	v.broadcast()
	return nil
}

func (v *View) broadcast() {
	close(v.changed)
	v.changed = make(chan struct{})
}

// Get returns the state, and a channel that is closed when there is a newer one.
func (v *View) Get() (*State, <-chan struct{}, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.state, v.changed, v.err
}

func (v *View) moving() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.state.Moving
}

// Await returns the first state that cond accepts.
func (v *View) Await(ctx context.Context, cond func(*State) bool) (*State, error) {
	for {
		s, changed, err := v.Get()
		if err != nil {
			return nil, err
		}
		if cond(s) {
			return s, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
