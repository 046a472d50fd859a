package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/envelope"
	"blobfeed/verify"
)

const (
	// brokerPatience is how long brokers may take to answer, or a partition to send what is said to be there.
	brokerPatience = 30 * time.Second
	// endPatience is how long open transactions may keep committed records out of sight: more than BRIDGE_TXN_TIMEOUT mostly is.
	endPatience = time.Minute
	endPoll     = 100 * time.Millisecond
)

// errNoTopic says that a topic does not exist.
var errNoTopic = errors.New("it does not exist")

// topic is a topic up to the end that it had when it was opened.
type topic struct {
	name      string
	options   []kgo.Opt
	admin     *kadm.Client
	from, to  map[int32]int64
	compacted bool
	markers   map[int32]envelope.Timestamp // the last that was read, by partition
	seeks     []string                     // what the markers of partition 0 tell of them, as far as it was read
}

// openTopic asks where the topic begins and ends. The end is behind everything that is committed by now: a transaction that
// is visible on one partition may not be on the next, so it waits until none is open at or below today's end.
func openTopic(ctx context.Context, options []kgo.Opt, name string) (*topic, error) {
	cl, err := kgo.NewClient(options...)
	if err != nil {
		return nil, err
	}
	t := &topic{name: name, options: options, admin: kadm.NewClient(cl), markers: map[int32]envelope.Timestamp{}}
	if err := t.open(ctx); err != nil {
		t.close()
		return nil, fmt.Errorf("opening topic %s: %w", name, err)
	}
	return t, nil
}

func (t *topic) close() { t.admin.Close() }

func (t *topic) open(ctx context.Context) (err error) {
	asking, cancel := context.WithTimeoutCause(ctx, brokerPatience, errors.New("the brokers do not answer"))
	defer cancel()
	topics, err := t.admin.ListTopics(asking, t.name)
	if err == nil && errors.Is(topics[t.name].Err, kerr.UnknownTopicOrPartition) {
		return errNoTopic
	}
	if err != nil {
		return because(asking, err)
	}
	high, err := t.ask(asking, t.admin.ListEndOffsets)
	if err != nil {
		return err
	}
	if t.from, err = t.ask(asking, t.admin.ListStartOffsets); err != nil {
		return err
	}
	if t.compacted, err = t.policy(asking); err != nil {
		return err
	}
	return t.await(ctx, func(ctx context.Context) (string, error) {
		t.to, err = t.ask(ctx, t.admin.ListCommittedOffsets)
		for p, end := range high {
			if err == nil && t.to[p] < end {
				return fmt.Sprintf("an open transaction keeps partition %d at offset %d of %d", p, t.to[p], end), nil
			}
		}
		return "", err
	})
}

// because returns the cause of a deadline instead of err.
func because(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// await asks until nothing is left to wait for.
func (t *topic) await(ctx context.Context, ask func(context.Context) (waiting string, err error)) error {
	ctx, cancel := context.WithTimeout(ctx, endPatience)
	defer cancel()
	for {
		waiting, err := ask(ctx)
		if err != nil || waiting == "" {
			return err
		}
		select {
		case <-time.After(endPoll):
		case <-ctx.Done():
			return errors.New(waiting)
		}
	}
}

func (t *topic) ask(ctx context.Context, list func(context.Context, ...string) (kadm.ListedOffsets, error)) (map[int32]int64, error) {
	listed, err := list(ctx, t.name)
	if err == nil {
		err = listed.Error()
	}
	if err != nil {
		return nil, because(ctx, fmt.Errorf("asking for offsets: %w", err))
	}
	at := map[int32]int64{}
	listed.Each(func(o kadm.ListedOffset) { at[o.Partition] = o.Offset })
	return at, nil
}

func (t *topic) policy(ctx context.Context) (compacted bool, err error) {
	configs, err := t.admin.DescribeTopicConfigs(ctx, t.name)
	if err != nil {
		return false, because(ctx, err)
	}
	rc, err := configs.On(t.name, nil)
	if err == nil {
		err = rc.Err
	}
	if err != nil {
		return false, fmt.Errorf("reading its settings: %w", err)
	}
	for _, c := range rc.Configs {
		if c.Key == "cleanup.policy" {
			compacted = strings.Contains(c.MaybeValue(), "compact")
		}
	}
	return compacted, nil
}

func (t *topic) empty() bool {
	for p, end := range t.to {
		if t.from[p] < end {
			return false
		}
	}
	return true
}

// scan shows the records of all partitions to note, until it has enough of a partition, or its end.
func (t *topic) scan(ctx context.Context, note func(verify.Record) (more bool)) error {
	t.seeks = nil
	return t.read(ctx, t.from, t.to, note)
}

func (t *topic) read(ctx context.Context, from, to map[int32]int64, note func(verify.Record) (more bool)) error {
	next, begin := map[int32]int64{}, map[int32]kgo.Offset{}
	for p, end := range to {
		if from[p] < end {
			next[p], begin[p] = from[p], kgo.NewOffset().At(from[p])
		}
	}
	if len(next) == 0 {
		return nil
	}
	cl, err := kgo.NewClient(append(slices.Clone(t.options), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{t.name: begin}),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.KeepControlRecords(),                    // the end of a partition mostly is one
		kgo.ConsumeResetOffset(kgo.NoResetOffset()), // what retention takes from under us is an error, not a gap
		kgo.FetchMaxWait(500*time.Millisecond))...)
	if err != nil {
		return err
	}
	defer cl.Close()
	for len(next) > 0 {
		polling, cancel := context.WithTimeout(ctx, brokerPatience)
		fs := cl.PollFetches(polling)
		cancel()
		if ctx.Err() != nil {
			return fmt.Errorf("reading topic %s: %w", t.name, ctx.Err())
		}
		var failed error
		fs.EachError(func(_ string, p int32, err error) {
			failed = fmt.Errorf("reading topic %s, partition %d: %w", t.name, p, err)
		})
		if errors.Is(failed, kerr.TopicAuthorizationFailed) {
			return fmt.Errorf("%w (verify takes Read on this topic, which run does not: docs/security.md)", failed)
		}
		if errors.Is(failed, context.DeadlineExceeded) {
			for p, at := range next {
				failed = fmt.Errorf("reading topic %s: nothing came for %s, and partition %d stands at offset %d of %d", t.name, brokerPatience, p, at, to[p])
			}
		}
		if failed != nil {
			return failed
		}
		fs.EachRecord(func(r *kgo.Record) {
			p := r.Partition
			if _, reading := next[p]; !reading {
				return
			}
			next[p] = r.Offset + 1
			more := r.Offset < to[p]
			if more && !r.Attrs.IsControl() {
				more = t.show(r, note)
			}
			if !more || next[p] >= to[p] {
				delete(next, p)
				cl.PauseFetchPartitions(map[string][]int32{t.name: {p}})
			}
		})
	}
	return nil
}

// logAppendTime is the timestamp type of records whose time is the broker's, and so says nothing about ours.
const logAppendTime = 1

func (t *topic) show(r *kgo.Record, note func(verify.Record) (more bool)) bool {
	v := verify.Record{Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, Key: r.Key, Value: r.Value}
	if r.Attrs.TimestampType() != logAppendTime {
		v.Millis = r.Timestamp.UnixMilli()
	}
	v.Headers = make([]verify.Header, len(r.Headers))
	for i, h := range r.Headers {
		v.Headers[i] = verify.Header(h)
	}
	if at, ok := markerTime(&v); ok {
		t.markers[r.Partition] = at
	}
	if seek := v.Header("seek"); seek != nil && v.Key == nil && v.Partition == 0 {
		t.seeks = append(t.seeks, string(seek))
	}
	return note(v)
}

// markerTime returns the time of a marker, of whatever envelope.
func markerTime(r *verify.Record) (envelope.Timestamp, bool) {
	if r.Key != nil {
		return envelope.Timestamp{}, false
	}
	text := string(r.Header("resolved"))
	if text == "" {
		var value struct {
			Resolved string
			Sentinel struct{ Resolved string } `json:"__crdb__"`
		}
		if json.Unmarshal(r.Value, &value) != nil {
			return envelope.Timestamp{}, false
		}
		text = value.Resolved + value.Sentinel.Resolved
	}
	at, err := envelope.ParseTimestamp(text)
	return at, err == nil
}

// catchUp reads on where others have a newer marker. A marker goes to all partitions in one transaction, but their ends were
// not asked for at one moment. What is between was committed before that marker, so it is in the feed as it was read.
func (t *topic) catchUp(ctx context.Context, note func(verify.Record) (more bool)) error {
	var newest envelope.Timestamp
	for _, at := range t.markers {
		if at.Compare(newest) > 0 {
			newest = at
		}
	}
	behind := func() map[int32]int64 {
		from := map[int32]int64{}
		for p, end := range t.to {
			if t.markers[p].Compare(newest) < 0 {
				from[p] = end
			}
		}
		return from
	}
	if len(behind()) == 0 {
		return nil
	}
	// One moment is enough: whoever showed a marker had it committed.
	ends, err := t.ask(ctx, t.admin.ListEndOffsets)
	if err != nil {
		return err
	}
	for p := range behind() {
		if err := t.await(ctx, func(ctx context.Context) (string, error) {
			committed, err := t.ask(ctx, t.admin.ListCommittedOffsets)
			if err == nil && committed[p] < ends[p] {
				return fmt.Sprintf("an open transaction keeps partition %d of %s at offset %d of %d", p, t.name, committed[p], ends[p]), nil
			}
			return "", err
		}); err != nil {
			return err
		}
		err := t.read(ctx, map[int32]int64{p: t.to[p]}, map[int32]int64{p: ends[p]}, func(r verify.Record) bool {
			t.to[p] = r.Offset + 1
			return note(r) && t.markers[p].Compare(newest) < 0
		})
		if err != nil {
			return err
		}
	}
	return nil
}
