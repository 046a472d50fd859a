package judge

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/envelope"
	"blobfeed/internal/setup"
	"blobfeed/internal/status"
	"blobfeed/internal/topics"
	"blobfeed/offsets"
)

const (
	brokerPatience = 30 * time.Second // for an answer of the brokers
	// recordPatience is for the next records, which an open transaction may hide. It is longer than most
	// BRIDGE_TXN_TIMEOUTs.
	recordPatience = time.Minute
)

// brokers are those of Kafka, by the options of a client.
type brokers []kgo.Opt

// open looks up the start and the end of a topic. The end is after everything that is written by now, committed or not:
// a transaction that is visible on one partition may not be visible on the next yet.
func (b brokers) open(ctx context.Context, name string) (*topic, error) {
	t := &topic{name: name, records: kafkaTopic{b, name}, markers: map[int32]envelope.Timestamp{}}
	err := b.ask(ctx, func(ctx context.Context, admin *kadm.Client) error {
		listed, err := admin.ListTopics(ctx, name)
		if err != nil {
			return err
		}
		if errors.Is(listed[name].Err, kerr.UnknownTopicOrPartition) {
			return errNoTopic
		}
		if t.to, err = offsetsBy(ctx, admin.ListEndOffsets, name); err != nil {
			return err
		}
		if t.from, err = offsetsBy(ctx, admin.ListStartOffsets, name); err != nil {
			return err
		}
		settings, err := topics.Read(ctx, admin, name)
		t.compacted = settings[name].Compacted()
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("opening topic %s: %w", name, err)
	}
	return t, nil
}

// state reads with the code that writes the state, and so knows the versions before this one.
func (b brokers) state(ctx context.Context, topic string) (s *offsets.State, err error) {
	err = b.ask(ctx, func(ctx context.Context, admin *kadm.Client) error {
		s, err = (&status.Reader{Topic: topic, Admin: admin, Client: b}).State(ctx)
		return err
	})
	var never *status.NeverRanError
	if errors.As(err, &never) {
		return nil, nil
	}
	return s, err
}

func (b brokers) claims(ctx context.Context, own string) (claims []offsets.Claim, err error) {
	err = b.ask(ctx, func(ctx context.Context, admin *kadm.Client) error {
		claims, _, err = offsets.Claims(ctx, admin, own, b...)
		return err
	})
	return claims, err
}

// ask calls f with a client and a deadline.
func (b brokers) ask(ctx context.Context, f func(context.Context, *kadm.Client) error) error {
	cl, err := kgo.NewClient(b...)
	if err != nil {
		return err
	}
	defer cl.Close()
	asking, cancel := context.WithTimeoutCause(ctx, brokerPatience, setup.ErrSilent)
	defer cancel()
	if err = f(asking, kadm.NewClient(cl)); err != nil && asking.Err() != nil {
		return context.Cause(asking)
	}
	return err
}

// kafkaTopic is a topic of real brokers.
type kafkaTopic struct {
	brokers brokers
	name    string
}

func (k kafkaTopic) ends(ctx context.Context) (ends map[int32]int64, err error) {
	err = k.brokers.ask(ctx, func(ctx context.Context, admin *kadm.Client) error {
		ends, err = offsetsBy(ctx, admin.ListEndOffsets, k.name)
		return err
	})
	return ends, err
}

// offsetsBy lists offsets of a topic by a function of kadm.
func offsetsBy(
	ctx context.Context, list func(context.Context, ...string) (kadm.ListedOffsets, error), topic string,
) (map[int32]int64, error) {
	listed, err := topics.Offsets(ctx, list, topic)
	if err != nil {
		return nil, fmt.Errorf("listing offsets: %w", err)
	}
	at := map[int32]int64{}
	listed.Each(func(o kadm.ListedOffset) { at[o.Partition] = o.Offset })
	return at, nil
}

func (k kafkaTopic) read(ctx context.Context, from, to map[int32]int64, show func(*kgo.Record) (more bool)) error {
	reading := topics.Reading{Client: k.brokers, Topic: k.name, From: from, To: to, Patience: recordPatience}
	err := reading.Each(ctx, show)
	if errors.Is(err, kerr.TopicAuthorizationFailed) {
		return fmt.Errorf("%w: verify needs Read on this topic, which run does not; see docs/security.md", err)
	}
	var silent *topics.SilentError
	if errors.As(err, &silent) && silent.Why == nil {
		return fmt.Errorf("%w: an open transaction may hide them; verify again when BRIDGE_TXN_TIMEOUT is over", err)
	}
	return err
}
