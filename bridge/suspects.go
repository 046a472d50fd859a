package bridge

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
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

// suspectBytes bounds the keys that are in memory. A partition with more of them is read several times (I9).
const suspectBytes = 16 << 20

// class is a part of all keys: those whose hash has these low bits.
type class struct {
	bits  int
	value uint64
}

func (c class) has(hash uint64) bool { return hash&(1<<c.bits-1) == c.value }

// halves divides a class.
func (c class) halves() (class, class) {
	return class{c.bits + 1, c.value}, class{c.bits + 1, c.value | 1<<c.bits}
}

// suspects looks for the keys of one partition of a topic.
type suspects struct {
	client    []kgo.Opt
	topic     string
	partition int32
	encoder   *envelope.Encoder
	scan      string // the ID of the scan
	limit     int    // bytes of keys in memory
	patience  time.Duration

	skipped int64 // live keys that are no paths of blobs
}

// find reads the partition to its present end, once for each class, and calls found with the suspects of each. It goes
// on when found returns, so only one class is in memory.
func (s *suspects) find(ctx context.Context, found func([]suspect) error) error {
	for left := []class{{}}; len(left) > 0; {
		c := left[len(left)-1]
		left = left[:len(left)-1]
		keys, others, err := s.read(ctx, c)
		if err != nil {
			return fmt.Errorf("looking for lost deletions in partition %d of %s: %w", s.partition, s.topic, err)
		}
		left = append(left, others...)
		if len(keys) == 0 {
			continue
		}
		if err := found(keys); err != nil {
			return err
		}
	}
	return nil
}

// read returns the suspects of a class. If they are too many it returns some of them, and the classes of the others.
func (s *suspects) read(ctx context.Context, c class) (keys []suspect, others []class, err error) {
	cl, err := kgo.NewClient(append(slices.Clone(s.client), kgo.WithContext(ctx))...)
	if err != nil {
		return nil, nil, err
	}
	defer cl.Close()
	ends, err := topics.Offsets(ctx, kadm.NewClient(cl).ListCommittedOffsets, s.topic)
	if err != nil {
		return nil, nil, err
	}
	starts, err := topics.Offsets(ctx, kadm.NewClient(cl).ListStartOffsets, s.topic)
	if err != nil {
		return nil, nil, err
	}
	end, ended := ends.Lookup(s.topic, s.partition)
	start, started := starts.Lookup(s.topic, s.partition)
	if !ended || !started {
		return nil, nil, errors.New("the topic does not have this partition")
	}
	reading := topics.Reading{
		Client: append(slices.Clone(s.client), kgo.FetchMaxBytes(8<<20)), Topic: s.topic, Patience: s.patience,
		From: map[int32]int64{s.partition: start.Offset}, To: map[int32]int64{s.partition: end.Offset},
	}
	live := map[string]struct{}{}
	size, listed := 0, false
	err = reading.Each(ctx, func(r *kgo.Record) (more bool) {
		// No history is lost behind the first row of the scan: if the feed deletes a key that it writes there, the
		// topic has the deletion, or will have it.
		listed = listed || s.isRow(r)
		if r.Key == nil || !c.has(hashOf(r.Key)) { // without a key, it is a marker
			return true
		}
		if listed || s.encoder.Deletes(r.Value) {
			if _, had := live[string(r.Key)]; had {
				delete(live, string(r.Key))
				size -= len(r.Key)
			}
			return true
		}
		if _, had := live[string(r.Key)]; had {
			return true
		}
		live[string(r.Key)] = struct{}{}
		for size += len(r.Key); size > s.limit; {
			mine, other := c.halves()
			c, others = mine, append(others, other)
			maps.DeleteFunc(live, func(key string, _ struct{}) bool {
				gone := !c.has(hashOf([]byte(key)))
				if gone {
					size -= len(key)
				}
				return gone
			})
		}
		return true
	})
	if err != nil {
		return nil, nil, err
	}
	for key := range live {
		if container, name, ok := s.encoder.Path([]byte(key)); ok {
			keys = append(keys, suspect{container, name})
		} else {
			s.skipped++
		}
	}
	return keys, others, nil
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

func hashOf(key []byte) uint64 {
	h := fnv.New64a()
	_, _ = h.Write(key)
	return h.Sum64()
}

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
