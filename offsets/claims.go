package offsets

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"

	"blobfeed/internal/crash"
	"blobfeed/internal/plain"
	"blobfeed/internal/topics"
)

// Claim is what the state of a bridge says about the topics that the bridge writes to.
//
// Kafka keeps no owner of a topic. The topic's own records could name one, but retention deletes records, and a bridge
// needs no right to read its topics. A registry shared by all bridges would be one more topic with its own rights,
// which any of them could fill with wrong claims. The states name the topics anyway and last as long as the progress
// does, so they are the claims. A bridge claims before it writes. When it first claims a topic that holds records, it
// reads the claims of all others, which takes time for each of them.
//
// A reset withdraws the claims. A state that the client has no right to read hides its claims: Claims reports it.
type Claim struct {
	Name     string            // the bridge's
	Feed     string            // identity of its account or directory
	Settings map[string]string // its frozen settings
	Topics   []string          // of its records
}

// readers is how many states are read at a time.
const readers = 8

// Claims reads the states of all bridges on the brokers but the one called own. Hidden names the states that can't be
// read, now or ever: no right to, or written by something else. Any other failure is err, which may pass.
func Claims(ctx context.Context, adm *kadm.Client, own string, opts ...kgo.Opt) (
	claims []Claim, hidden []error, err error,
) {
	all, err := adm.ListTopics(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("listing the topics to find other bridges: %w", err)
	}
	var names []string
	for topic := range all {
		if name, ok := plain.BridgeOfState(topic); ok && name != own {
			names = append(names, topic)
		}
	}
	slices.Sort(names)
	found, errs := make([]*Claim, len(names)), make([]error, len(names))
	var g errgroup.Group
	g.SetLimit(readers)
	for i, topic := range names {
		g.Go(crash.Try(ctx, "claims", func() error {
			found[i], errs[i] = claimOf(ctx, adm, topic, len(all[topic].Partitions), opts...)
			return nil
		}))
	}
	if err := g.Wait(); err != nil { // a panic: each error is in errs
		return nil, nil, err
	}
	var failed []error
	for i, claim := range found {
		switch {
		case errs[i] != nil && lasting(errs[i]):
			hidden = append(hidden, errs[i])
		case errs[i] != nil:
			failed = append(failed, errs[i])
		case claim != nil:
			claims = append(claims, *claim)
		}
	}
	return claims, hidden, errors.Join(failed...)
}

// lasting reports whether another attempt to read a state fails, too.
func lasting(err error) bool {
	var unreadable *documentError
	return errors.As(err, &unreadable) || errors.Is(err, kerr.TopicAuthorizationFailed) || errors.Is(err, errNoState)
}

// passing reports whether an error is about the brokers, not about the records that they return. Another user of the
// brokers must not stop a bridge with records that nobody can read.
func passing(err error) bool {
	var broken net.Error
	var silent *topics.SilentError
	return errors.Is(err, context.Canceled) || errors.As(err, &silent) || errors.As(err, &broken) ||
		errors.Is(err, kgo.ErrClientClosed) || kerr.IsRetriable(err)
}

var errNoState = errors.New("no frontier of a bridge was found in time")

// claimTimeout is for one state. The name of its topic is no proof that a bridge wrote it. In a topic of something
// else the end may never be reached: compaction can leave no record there.
const claimTimeout = 5 * time.Second

// tail is how many offsets at the end of a partition are read first. They hold the last cursor and mostly the last
// frontier, which is written with every segment.
const tail = 4000

// claimOf reads the claim in an offsets topic, nil if there is none.
func claimOf(ctx context.Context, adm *kadm.Client, topic string, partitions int, opts ...kgo.Opt) (*Claim, error) {
	ctx, cancel := context.WithTimeout(ctx, claimTimeout)
	defer cancel()
	starts, err := topics.Offsets(ctx, adm.ListStartOffsets, topic)
	var ends kadm.ListedOffsets
	if err == nil {
		// The end of a transaction may have reached a topic of records, and not the claim in the state yet.
		ends, err = topics.DecidedEnds(ctx, adm, topic)
	}
	if errors.Is(err, kerr.UnknownTopicOrPartition) {
		return nil, nil // deleted since it was listed
	}
	if err != nil {
		return nil, fmt.Errorf("reading the ends of %s: %w", topic, err)
	}
	read := func(from, to int, last int64) (*State, error) {
		begin, end := map[int32]int64{}, make([]int64, partitions)
		for p := int32(from); p < int32(to); p++ {
			s, _ := starts.Lookup(topic, p)
			e, _ := ends.Lookup(topic, p)
			if e.Offset > s.Offset { // else everything was deleted, and no record says that the end is reached
				begin[p], end[p] = max(s.Offset, e.Offset-last), e.Offset
			}
		}
		s, err := readFrom(ctx, topic, begin, end, claimTimeout/2, opts...)
		silent := errors.As(err, new(*topics.SilentError)) // brokers, of which nothing is known
		if silent || errors.Is(err, context.DeadlineExceeded) {
			if s.Frontier != nil {
				return s, nil // what is missing is later than this frontier
			}
			if !silent {
				err = errNoState
			}
		}
		if err != nil && !passing(err) {
			err = &documentError{err}
		}
		if err != nil {
			return nil, fmt.Errorf("reading the claims in %s: %w", topic, err)
		}
		return s, nil
	}
	s, err := read(0, 1, tail)
	if err == nil && s.Frontier == nil && s.Epoch == 0 {
		s, err = read(0, 1, math.MaxInt64)
	}
	if err != nil || s.Frontier == nil {
		return nil, err
	}
	f := *s.Frontier
	// With a template the cursor claims a new topic, with the first record, until the segment is complete.
	if strings.Contains(f.Settings[FrozenTopic], "{") {
		if s, err = read(0, partitions, tail); err != nil {
			return nil, err
		}
		for _, c := range s.Cursors {
			if c != nil {
				f.Adopt(c.Pins)
			}
		}
	}
	name, _ := plain.BridgeOfState(topic)
	return &Claim{
		Name: name, Feed: f.Feed,
		Settings: f.Settings, Topics: slices.Sorted(maps.Keys(f.Topics)),
	}, nil
}
