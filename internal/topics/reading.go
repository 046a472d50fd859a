package topics

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"blobfeed/internal/pause"
)

// Reading reads what is committed in partitions of a topic. It succeeds only if it has read everything up to the ends:
// it has seen a record there, or the leader of the partition has answered that nothing is left before the end, as where
// compaction has removed it. A broker that is silent, or a partition without a leader, is an error.
type Reading struct {
	Client   []kgo.Opt
	Topic    string
	From, To map[int32]int64 // by partition; To is excluded. A partition without To is not read
	Patience time.Duration   // how long the brokers may bring nothing and prove no end; 0 is Patience
	Control  bool            // also show the ends of transactions
}

// Patience is that of most readers.
var Patience = 30 * time.Second // tests have a shorter one

// probeAfter is how long a poll waits for records before the leaders are asked whether there are any.
const probeAfter = time.Second

// SilentError says that brokers return no records before an offset that they report as an end, and don't say that there
// are none.
type SilentError struct {
	Partition int32
	At, End   int64
	Patience  time.Duration
	Why       error // what the leader answered; nil if it has records, and does not send them
}

func (e *SilentError) Error() string {
	text := fmt.Sprintf("no records for %s: partition %d is at offset %d of %d", e.Patience, e.Partition, e.At, e.End)
	if e.Why == nil {
		return text + ": an open transaction may hide them"
	}
	return text + ": " + e.Why.Error()
}

func (e *SilentError) Unwrap() error { return e.Why }

// Each calls show with each record, in the order of its partition. A partition is read no further once show has
// returned false for it.
func (r *Reading) Each(ctx context.Context, show func(*kgo.Record) (more bool)) error {
	if err := r.each(ctx, show); err != nil {
		return fmt.Errorf("reading topic %s: %w", r.Topic, err)
	}
	return nil
}

func (r *Reading) each(ctx context.Context, show func(*kgo.Record) (more bool)) error {
	next, begin := map[int32]int64{}, map[int32]kgo.Offset{}
	for p, end := range r.To {
		if r.From[p] < end {
			next[p], begin[p] = r.From[p], kgo.NewOffset().At(r.From[p])
		}
	}
	if len(next) == 0 {
		return nil
	}
	if r.Patience == 0 {
		r.Patience = Patience
	}
	cl, err := kgo.NewClient(append(slices.Clone(r.Client),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{r.Topic: begin}),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.KeepControlRecords(),                    // the last record of a partition mostly is one
		kgo.ConsumeResetOffset(kgo.NoResetOffset()), // records that retention deletes meanwhile are an error, not a gap
		kgo.FetchMaxBytes(2<<20),                    // I9: unpacked, records take five times that
		kgo.FetchMaxWait(500*time.Millisecond),
		kgo.WithContext(ctx))...)
	if err != nil {
		return err
	}
	defer cl.Close()
	for len(next) > 0 {
		if err := r.batch(ctx, cl, next, show); err != nil {
			return err
		}
	}
	return nil
}

// batch shows what arrives next, or takes out of next the partitions whose ends are proved.
func (r *Reading) batch(
	ctx context.Context, cl *kgo.Client, next map[int32]int64, show func(*kgo.Record) (more bool),
) error {
	patient, cancel := context.WithTimeout(ctx, r.Patience)
	defer cancel()
	why := map[int32]error{}
	for {
		polling, cancel := context.WithTimeout(patient, min(probeAfter, r.Patience/4))
		fs := cl.PollFetches(polling)
		cancel()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		var failed error
		fs.EachError(func(_ string, p int32, err error) {
			if failed == nil && !errors.Is(err, context.DeadlineExceeded) {
				failed = fmt.Errorf("partition %d: %w", p, err)
			}
		})
		if failed != nil {
			return failed
		}
		if fs.NumRecords() > 0 {
			r.show(cl, fs, next, show)
			return nil
		}
		some := false
		for _, p := range slices.Sorted(maps.Keys(next)) {
			ended, err := r.proved(patient, cl, p, next[p])
			switch {
			case ctx.Err() != nil:
				return context.Cause(ctx)
			case ended:
				r.end(cl, next, p)
				some = true
			case patient.Err() != nil: // err is that the time is over
				return &SilentError{Partition: p, At: next[p], End: r.To[p], Patience: r.Patience, Why: why[p]}
			default:
				why[p] = err
			}
		}
		if some {
			return nil
		}
	}
}

func (r *Reading) show(cl *kgo.Client, fs kgo.Fetches, next map[int32]int64, show func(*kgo.Record) (more bool)) {
	fs.EachRecord(func(rec *kgo.Record) {
		p := rec.Partition
		if _, reading := next[p]; !reading {
			return
		}
		next[p] = rec.Offset + 1
		more := rec.Offset < r.To[p]
		if more && (r.Control || !rec.Attrs.IsControl()) {
			more = show(rec)
		}
		if !more || next[p] >= r.To[p] {
			r.end(cl, next, p)
		}
	})
}

func (r *Reading) end(cl *kgo.Client, next map[int32]int64, p int32) {
	delete(next, p)
	cl.PauseFetchPartitions(map[string][]int32{r.Topic: {p}})
}

// proved reports whether the leader of a partition says that it has no record from an offset on to the end. It asks
// with requests of its own, since the consumer does not say what was answered without records.
func (r *Reading) proved(ctx context.Context, cl *kgo.Client, p int32, at int64) (bool, error) {
	meta, err := kadm.NewClient(cl).Metadata(ctx, r.Topic)
	if err != nil {
		return false, err
	}
	topic := meta.Topics[r.Topic]
	partition := topic.Partitions[p]
	if err := errors.Join(topic.Err, partition.Err); err != nil {
		return false, err
	}
	if partition.Leader < 0 {
		return false, kerr.LeaderNotAvailable
	}
	for at < r.To[p] {
		batches, stable, err := r.fetch(ctx, cl.Broker(int(partition.Leader)), topic.ID, p, at)
		if err != nil {
			return false, err
		}
		behind, empty := skipEmpty(batches, at)
		if !empty {
			return false, nil
		}
		if behind == at {
			return stable >= r.To[p], nil
		}
		at = behind
	}
	return true, nil
}

// fetch asks for what follows an offset. Stable is how far the leader's answers go.
func (r *Reading) fetch(
	ctx context.Context, leader *kgo.Broker, id kadm.TopicID, p int32, at int64,
) (batches []byte, stable int64, err error) {
	partition := kmsg.NewFetchRequestTopicPartition()
	partition.Partition, partition.FetchOffset, partition.PartitionMaxBytes = p, at, 1<<20
	topic := kmsg.NewFetchRequestTopic()
	topic.Topic, topic.TopicID = r.Topic, id
	topic.Partitions = append(topic.Partitions, partition)
	req := kmsg.NewPtrFetchRequest()
	req.MinBytes, req.MaxBytes, req.IsolationLevel = 0, 1<<20, 1 // of what is committed
	req.Topics = append(req.Topics, topic)
	answer, err := leader.RetriableRequest(ctx, req)
	if err != nil {
		return nil, 0, err
	}
	resp := answer.(*kmsg.FetchResponse)
	if err := kerr.ErrorForCode(resp.ErrorCode); err != nil {
		return nil, 0, err
	}
	if len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != 1 {
		return nil, 0, errors.New("the broker answers a fetch of one partition with another number of them")
	}
	got := &resp.Topics[0].Partitions[0]
	return got.RecordBatches, got.LastStableOffset, kerr.ErrorForCode(got.ErrorCode)
}

// Where a batch has what, in bytes from its start.
const (
	batchLength  = 8
	batchDelta   = 23 // of its last offset
	batchRecords = 57
	batchHeader  = 61
)

// skipEmpty returns the offset behind batches that compaction has left without records. Empty is false if there is
// a batch with records at or behind the offset.
func skipEmpty(batches []byte, at int64) (behind int64, empty bool) {
	for len(batches) >= batchHeader {
		last := int64(binary.BigEndian.Uint64(batches)) + int64(binary.BigEndian.Uint32(batches[batchDelta:]))
		size := batchLength + 4 + int(binary.BigEndian.Uint32(batches[batchLength:]))
		if last >= at && binary.BigEndian.Uint32(batches[batchRecords:]) > 0 {
			return at, false
		}
		at = max(at, last+1)
		batches = batches[min(size, len(batches)):]
	}
	return at, len(batches) == 0
}

// Foreign returns the error for a topic that holds records of others.
func Foreign(topic string) error {
	return &RejectedError{topic, "it holds records, and not of this bridge", "begin BRIDGE_TOPIC with a literal " +
		"text, or, if the records may be mixed or are this bridge's own from before a reset, " +
		"set BRIDGE_TOPIC_ADOPT=true"}
}

// Offsets lists offsets of topics by a function of kadm, and fails if a partition has none.
func Offsets(
	ctx context.Context, list func(context.Context, ...string) (kadm.ListedOffsets, error), topics ...string,
) (kadm.ListedOffsets, error) {
	listed, err := list(ctx, topics...)
	if err == nil {
		err = listed.Error()
	}
	return listed, err
}

// Ends returns the end of what can be read, by partition. What is committed behind an open transaction, or behind one
// whose end has not reached the partition yet, is not below it.
func (a *Admin) Ends(ctx context.Context, topic string) ([]int64, error) {
	return endsBy(ctx, a.admin().ListCommittedOffsets, topic)
}

// LastEnds returns the end of what is written, committed or not, by partition.
func (a *Admin) LastEnds(ctx context.Context, topic string) ([]int64, error) {
	return endsBy(ctx, a.admin().ListEndOffsets, topic)
}

func endsBy(
	ctx context.Context, list func(context.Context, ...string) (kadm.ListedOffsets, error), topic string,
) ([]int64, error) {
	listed, err := Offsets(ctx, list, topic)
	if err != nil {
		return nil, fmt.Errorf("reading the ends of topic %s: %w", topic, err)
	}
	ends := make([]int64, len(listed[topic]))
	for p, o := range listed[topic] {
		ends[p] = o.Offset
	}
	return ends, nil
}

// undecided is how long to wait for transactions before what they hide is left out. Brokers acknowledge a commit some
// moments before readers see it. But an owner may be dead, and its transaction be open for long.
const undecided = time.Second

// DecidedEnds returns the offsets up to which a topic can be read, when all that was written before can be: what was
// committed before the call is below them. It does not wait for long.
func DecidedEnds(ctx context.Context, admin *kadm.Client, topic string) (kadm.ListedOffsets, error) {
	written, err := Offsets(ctx, admin.ListEndOffsets, topic)
	if err != nil {
		return nil, err
	}
	for began := time.Now(); ; {
		ends, err := Offsets(ctx, admin.ListCommittedOffsets, topic)
		open := false
		written.Each(func(end kadm.ListedOffset) {
			have, _ := ends.Lookup(end.Topic, end.Partition)
			open = open || have.Offset < end.Offset
		})
		if err != nil || !open || time.Since(began) > undecided {
			return ends, err
		}
		if err := pause.For(ctx, 20*time.Millisecond); err != nil {
			return nil, err
		}
	}
}

// Used reports whether a topic exists and holds a committed record, or has held one. Records of aborted transactions do
// not count: an instance may have created the topic, and ended before its first commit. Opts are those of a client.
func (a *Admin) Used(ctx context.Context, topic string, opts []kgo.Opt) (bool, error) {
	if _, err := Count(ctx, a.admin(), topic); errors.As(err, new(*MissingError)) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	starts, err := Offsets(ctx, a.admin().ListStartOffsets, topic)
	if err != nil {
		return false, fmt.Errorf("reading the starts of topic %s: %w", topic, err)
	}
	ends, err := DecidedEnds(ctx, a.admin(), topic)
	if err != nil {
		return false, fmt.Errorf("reading the ends of topic %s: %w", topic, err)
	}
	r := Reading{Client: opts, Topic: topic, To: map[int32]int64{}}
	for p, end := range ends[topic] {
		if starts[topic][p].Offset > 0 {
			return true, nil
		}
		r.To[p] = end.Offset
	}
	ctx, found := context.WithCancel(ctx)
	defer found()
	used := false
	err = r.Each(ctx, func(*kgo.Record) bool {
		used = true
		found()
		return false
	})
	if used || errors.Is(err, kgo.ErrMaxDecompress) { // that is a batch with records
		return true, nil
	}
	if err != nil {
		err = fmt.Errorf("looking for records of others (that takes Read on the topic, unless BRIDGE_TOPIC begins "+
			"with a literal text or BRIDGE_TOPIC_ADOPT=true): %w", err)
	}
	return false, err
}
