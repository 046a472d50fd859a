package bridge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/envelope"
	"blobfeed/internal/topics"
	"blobfeed/offsets"
)

// suspect is a key whose blob the account may not have: its last record is no deletion, and is before all rows of the
// scan.
type suspect struct{ container, name string }

// suspects looks for the keys of one partition of a topic. It reads the partition once for each class of keys that fits
// into its memory, and a part of it once more if there are suspects: only then are whole keys in memory.
type suspects struct {
	client    []kgo.Opt
	topic     string
	partition int32
	encoder   *envelope.Encoder
	scan      string // the ID of the scan
	limit     int    // bytes that the hashes of keys may take
	patience  time.Duration

	from, rows, to int64 // offsets of the partition: rows is the first row of the scan, or to if there is none
	skipped        int64 // live keys that are no paths of blobs
}

const (
	// suspectsAtOnce is how many suspects are in memory.
	suspectsAtOnce = 1000
	// defaultSweepBytes is SweepBytes where they are not set.
	defaultSweepBytes = 16 << 20
)

// find reads the partition to its present end, and calls found with the suspects. It goes on when found returns.
func (s *suspects) find(ctx context.Context, found func([]suspect) error) error {
	if err := s.begin(ctx); err != nil {
		return s.explain(err)
	}
	live := newKeySet(s.to-s.from, s.limit)
	for left := []class{{}}; len(left) > 0; {
		live.class, left = left[len(left)-1], left[:len(left)-1]
		more, err := s.compare(ctx, live)
		if err != nil {
			return err
		}
		left = append(left, more...)
		// The suspects of one class may stay while the next one is read.
		if len(left) > 0 && live.count < len(live.slots)/4 {
			continue
		}
		if err := s.fetch(ctx, live, found); err != nil {
			return err
		}
	}
	return nil
}

func (s *suspects) explain(err error) error {
	return fmt.Errorf("looking for lost deletions in partition %d of %s: %w", s.partition, s.topic, err)
}

// begin finds out where the partition begins and ends.
func (s *suspects) begin(ctx context.Context) error {
	cl, err := kgo.NewClient(append(slices.Clone(s.client), kgo.WithContext(ctx))...)
	if err != nil {
		return err
	}
	defer cl.Close()
	ends, err := topics.Offsets(ctx, kadm.NewClient(cl).ListCommittedOffsets, s.topic)
	if err != nil {
		return err
	}
	starts, err := topics.Offsets(ctx, kadm.NewClient(cl).ListStartOffsets, s.topic)
	if err != nil {
		return err
	}
	end, ended := ends.Lookup(s.topic, s.partition)
	start, started := starts.Lookup(s.topic, s.partition)
	if !ended || !started {
		return errors.New("the topic does not have this partition")
	}
	s.from, s.rows, s.to = start.Offset, end.Offset, end.Offset
	return nil
}

// each reads the partition up to an offset.
func (s *suspects) each(ctx context.Context, to int64, show func(*kgo.Record) (more bool)) error {
	reading := topics.Reading{
		Client: append(slices.Clone(s.client), kgo.FetchMaxBytes(8<<20)), Topic: s.topic, Patience: s.patience,
		From: map[int32]int64{s.partition: s.from}, To: map[int32]int64{s.partition: to},
	}
	if err := reading.Each(ctx, show); err != nil {
		return s.explain(err)
	}
	return nil
}

// compare adds the suspects of live's class. If there are more keys than fit, it returns the classes that it has left
// out.
func (s *suspects) compare(ctx context.Context, live *keySet) (more []class, err error) {
	listed := false
	err = s.each(ctx, s.to, func(r *kgo.Record) bool {
		// No history is lost behind the first row of the scan: if the feed deletes a key that it writes there, the
		// topic has the deletion, or will have it.
		if !listed && s.isRow(r) {
			listed, s.rows = true, r.Offset
		}
		if r.Key == nil { // a marker
			return true
		}
		switch hash := live.hash(r.Key); {
		case !live.class.has(hash):
		case listed || s.encoder.Deletes(r.Value):
			live.remove(hash)
		default:
			more = append(more, live.add(hash)...)
		}
		return true
	})
	return more, err
}

// fetch calls found with the keys of live, and empties it.
func (s *suspects) fetch(ctx context.Context, live *keySet, found func([]suspect) error) error {
	var keys []suspect
	var failed error
	pass := func() {
		if len(keys) > 0 {
			failed = found(keys)
		}
		keys = nil
	}
	if live.count == 0 {
		return nil
	}
	err := s.each(ctx, s.rows, func(r *kgo.Record) (more bool) {
		if r.Key == nil || !live.remove(live.hash(r.Key)) {
			return true
		}
		if container, name, ok := s.encoder.Path(r.Key); ok {
			keys = append(keys, suspect{container, name})
		} else {
			s.skipped++
		}
		if len(keys) == suspectsAtOnce {
			pass()
		}
		return failed == nil && live.count > 0
	})
	if err == nil && failed == nil {
		pass()
	}
	live.clear() // compaction has removed the others meanwhile
	return cmp.Or(err, failed)
}

// isRow reports whether the scan has written a record.
func (s *suspects) isRow(r *kgo.Record) bool {
	return slices.ContainsFunc(r.Headers, func(h kgo.RecordHeader) bool {
		return h.Key == envelope.ScanHeader && string(h.Value) == s.scan
	})
}

// readPatience is how long brokers may return no record before an offset that they report as the end of a partition,
// without an answer that there is none.
var readPatience = 30 * time.Second // tests have a shorter one

// sweep finds deletions that the feed has lost: keys that are live in the topics, and that the scan has not listed. It
// belongs to a worker, and outlives its tenures, because reading the topics takes longer than a round.
//
// A key is no more than a suspect. What counts is the account's answer, and that is asked for and committed in one
// round, while nothing is delivered.
type sweep struct {
	scan  string // the ID
	end   context.CancelFunc
	batch chan batch    // of suspects; closed when all partitions are read, or err is set
	done  chan struct{} // closed when the reader has ended

	current batch // of the worker's goroutine: what is left of the last one
	mu      sync.Mutex
	err     error
}

// batch is suspects of one partition.
type batch struct {
	offsets.Lane
	suspects []suspect
	last     bool  // no suspect of the partition follows
	skipped  int64 // with last: keys of the partition that are no paths
}

// keepSweep ends the sweep unless it is of the scan that the state has. A seek cancels a scan, and then the lease may
// have no work, and no tenure that would end the sweep.
func (f *findings) keepSweep(s *offsets.State) {
	if f.sweep != nil && (s.Frontier == nil || !s.Frontier.Scan.Active() || s.Frontier.Scan.ID != f.sweep.scan) {
		f.stopSweep()
	}
}

// stop ends the reader, and returns when it has ended.
func (s *sweep) stop() {
	s.end()
	<-s.done
}
