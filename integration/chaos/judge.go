package chaos

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/internal/testing/feedsim"
	"blobfeed/partitioner"
	"blobfeed/verify"
)

// metadataAge: the client's default would cost 5 s after each change.
const metadataAge = 100 * time.Millisecond

// metadataMost is how late the reader finds added partitions. The default of 5 minutes is as long as endLimit.
const metadataMost = 2 * time.Second

// Judge reads a topic as its users do, and has everything checked.
type Judge struct {
	topic string
	cl    *kgo.Client

	mu         sync.Mutex
	validators []verify.Validator
	checks     *verify.Group // of the validators
	unique     *verify.Unique
	ledger     *ledger
	resolved   *verify.Resolved
	next       map[int32]int64 // by partition: what is below was read
	data       int64
	marks      int64
	newest     string // the time of the newest marker, on any partition
	rising     int    // markers of partition 0, each with a later time than the one before it, which is last
	last       string
	waiting    map[int]time.Time // events of the ledger that have not come, since when
	moved      time.Time         // when one came last, or began to be waited for
	delays     []time.Duration
	stalls     []time.Duration // in which nothing came though something was waited for
	onStall    func(time.Duration)
}

// stalled is from when on waiting counts as a stall: a commit and a poll of the feed take a part of it.
const stalled = 2 * time.Second

// NewJudge returns a Judge that has read nothing.
func NewJudge(brokers []string, topic string) (*Judge, error) {
	return newJudge(brokers, topic, partitions, false)
}

// newJudge is NewJudge of a topic that gets partitions, up to most, or in which events may be repeated: then the
// program itself verifies the order in the end.
func newJudge(brokers []string, topic string, most int, repeats bool) (*Judge, error) {
	j := &Judge{topic: topic, unique: verify.NewUnique(), ledger: newLedger(), resolved: verify.NewResolved(most),
		next: map[int32]int64{}, waiting: map[int]time.Time{}}
	order, place := verify.NewOrder(), verify.NewPartition(partitions, partitioner.Murmur2)
	if most > partitions { // lanes finds keys that move without a marker
		place = verify.NewPartition(partitions, partitioner.Murmur2,
			verify.Growth{Partitions: most, Resolved: never, Vague: true})
	}
	place.Repeats = repeats
	all := []verify.Validator{j.unique, j.ledger, j.resolved, order, place,
		newLanes()}
	if most > partitions {
		j.unique.Moves = true
		for p := partitions; p < most; p++ {
			j.resolved.StartsLate(int32(p), true)
		}
	} else {
		all = append(all, verify.NewSequence())
	}
	if repeats {
		all = []verify.Validator{j.ledger, place}
	}
	j.validators, j.checks = all, verify.All(all...)
	var err error
	j.cl, err = kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.ConsumeTopics(topic), kgo.MetadataMinAge(metadataAge),
		kgo.MetadataMaxAge(metadataMost), kgo.FetchMaxWait(200*time.Millisecond),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.KeepControlRecords())
	return j, err
}

// never is the time of a marker that does not come.
const never = "9000000000000000000.0000000000"

// Begun reports whether something has come.
func (j *Judge) Begun() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.next) > 0
}

// Close ends the reading.
func (j *Judge) Close() { j.cl.Close() }

// Expect says that an event has to come. It has not been written yet.
func (j *Judge) Expect(e feedsim.Event) {
	if e.Key == "" {
		return // Control: it makes no record
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.waiting) == 0 {
		j.moved = time.Now()
	}
	j.waiting[j.ledger.expect(e)] = time.Now()
}

// Read reads until ctx ends.
func (j *Judge) Read(ctx context.Context) error {
	for {
		fs := j.cl.PollFetches(ctx)
		if ctx.Err() != nil {
			return nil
		}
		fs.EachRecord(j.note)
		var failed error
		fs.EachError(func(_ string, p int32, err error) {
			failed = errors.Join(failed, fmt.Errorf("reading partition %d of %s: %w", p, j.topic, err))
		})
		if failed != nil {
			return failed
		}
	}
}

func (j *Judge) note(r *kgo.Record) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if r.Offset < j.next[r.Partition] {
		return // the client went back: it is the same record
	}
	j.next[r.Partition] = r.Offset + 1
	if r.Attrs.IsControl() {
		return
	}
	v := verify.Record{Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, Key: r.Key, Value: r.Value,
		Millis: r.Timestamp.UnixMilli()}
	for _, h := range r.Headers {
		v.Headers = append(v.Headers, verify.Header(h))
	}
	rounds := len(j.ledger.rounds)
	j.checks.Note(v)
	if len(j.ledger.rounds) > rounds { // what the seek skips is not due any more
		maps.DeleteFunc(j.waiting, func(n int, _ time.Time) bool {
			return j.ledger.events[n].segment < j.ledger.rounds[rounds].target
		})
	}
	if r.Key == nil {
		j.marks++
		at := v.MarkerTime() // all have the same length
		j.newest = max(j.newest, at)
		if r.Partition == 0 && at > j.last {
			j.last = at
			j.rising++
		}
		return
	}
	j.data++
	now := time.Now()
	if since := now.Sub(j.moved); len(j.waiting) > 0 && since > stalled {
		j.stalls = append(j.stalls, since)
		if j.onStall != nil {
			j.onStall(since)
		}
	}
	j.moved = now
	n, known := j.ledger.index[string(v.Header("position"))]
	if at, waits := j.waiting[n]; known && waits {
		delete(j.waiting, n)
		j.delays = append(j.delays, now.Sub(at))
	}
}

// Remove says that retention is about to remove blobs of a segment.
func (j *Judge) Remove(segment string, gone func(shard, chunk int) bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, n := range j.ledger.remove(segment, gone) {
		delete(j.waiting, n) // it may come or not
	}
}

// Seeks returns the number of seeks that markers report.
func (j *Judge) Seeks() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.ledger.rounds) - 1
}

// Sought reports whether a marker reports a seek to a segment, after the first n seeks.
func (j *Judge) Sought(segment string, n int) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.ledger.sought(segment, n)
}

// Moves says what seeks and retention did.
func (j *Judge) Moves() Moves {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.ledger.moves()
}

// Left is how many events have not come, and are still due.
func (j *Judge) Left() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.waiting)
}

// Newest returns the time of the newest marker, or "".
func (j *Judge) Newest() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.newest
}

// Oldest is how long an event waits to come, at most.
func (j *Judge) Oldest() (age time.Duration) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, at := range j.waiting {
		age = max(age, time.Since(at))
	}
	return age
}

// Markers is how many different markers came on partition 0.
func (j *Judge) Markers() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.rising
}

// Doubled reports whether an event came again.
func (j *Judge) Doubled() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.unique.Failures()) > 0
}

// Drained reports whether everything was read that is committed.
func (j *Judge) Drained(ctx context.Context) (bool, error) {
	ends, err := kadm.NewClient(j.cl).ListCommittedOffsets(ctx, j.topic)
	if err != nil {
		return false, err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	drained := true
	ends.Each(func(o kadm.ListedOffset) { drained = drained && o.Err == nil && j.next[o.Partition] >= o.Offset })
	return drained, nil
}

// Delays returns how long events took from the feed to a reader: half of them, 99 of 100, and all.
func (j *Judge) Delays() (half, most, all time.Duration) {
	j.mu.Lock()
	defer j.mu.Unlock()
	n := len(j.delays)
	if n == 0 {
		return 0, 0, 0
	}
	slices.Sort(j.delays)
	return j.delays[n/2], j.delays[n*99/100], j.delays[n-1]
}

// Stalls returns how often nothing came for long though something was waited for, how long in all, and at most.
func (j *Judge) Stalls() (n int, sum, worst time.Duration) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, d := range j.stalls {
		sum += d
		worst = max(worst, d)
	}
	return len(j.stalls), sum, worst
}

// Await returns when cond holds, or fails after limit.
func Await(ctx context.Context, limit time.Duration, what string, cond func(context.Context) (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	var last error
	for {
		ok, err := cond(ctx)
		if ok && err == nil {
			return nil
		}
		if ctx.Err() == nil {
			last = err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("after %s still not: %s", limit, what), last)
		}
	}
}
