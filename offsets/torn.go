package offsets

import (
	"context"
	"fmt"
	"maps"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Brokers answer EndTxn when the decision is in their log, and write the end of the transaction to its partitions
// after that. Kafka 4 leaves that out for a partition that has no leader at that moment: it takes the partition for a
// deleted one, says so in its log, and regards the transaction as complete. One broker that is killed and started again
// is enough where topics have one replica:
//
//	lease     EndTxn(commit) is acknowledged: cursor and records have no end yet
//	broker    is killed, is started again, loads the transaction, and has not joined the cluster: no leader
//	broker    leaves out the ends
//	lease     sends the next records under the next epoch, fails, and is closed
//	owner     fences: the brokers abort the next transaction, and with it the records before it in the same partitions
//	owner     writes its owner record: the end of that transaction is also the first one behind the cursor
//
// So the cursor would be committed and its records aborted. The log shows it: two records of one producer side by side,
// of different epochs, without an end between them. The first does not count then (I2). Its records are delivered
// again, after Lease.Discard has aborted those that are still open.
//
// A producer writes nothing before its last transaction was read back (see Tx.Commit), so there is at most one.

// unended is what stands last in a partition: documents of a transaction whose end was not read yet.
type unended struct {
	producer int64
	epoch    int16
	next     int64 // the offset behind the last of them; 0 if there are none
	before   leaseState
}

// leaseState is what a transaction in the partition of a lease can change.
type leaseState struct {
	written  *Cursor
	owner    string
	term     int64
	frontier *Frontier
	epoch    int64
	moving   bool
	mover    int64
	place    string
	born     int64
	marks    []mark
	seen     []int64
	topics   map[string]int32
}

// torn is a transaction that the brokers left without an end.
type torn struct{ topics map[string]int32 }

// Torn returns the topics that the last transaction of a lease may have written to, with their partitions, if the
// brokers left it without an end.
func (s *State) Torn(lease int32) (topics map[string]int32, ok bool) {
	t := s.torn[lease]
	if t == nil {
		return nil, false
	}
	topics = maps.Clone(t.topics)
	if topics == nil {
		topics = map[string]int32{}
	}
	maps.Copy(topics, s.topics) // a view that starts may read the frontier last
	return topics, true
}

// follow takes note of r, which s does not hold yet, and takes back what an undecided transaction before it has
// changed in s.
//
// Only records side by side say anything: compaction removes records, and some brokers remove ends.
func (t *unended) follow(s *State, r *kgo.Record) {
	if aside(string(r.Key)) && t.next > 0 && t.next == r.Offset {
		t.next++
		return
	}
	if r.Attrs.IsControl() || !r.Attrs.IsTransactional() {
		*t = unended{}
		return
	}
	adjacent := t.next == r.Offset && t.producer == r.ProducerID && t.next > 0
	if adjacent && t.epoch == r.ProducerEpoch {
		t.next++
		return
	}
	if adjacent {
		if s.torn[r.Partition] == nil { // else only an owner record was written since, and nothing is discarded yet
			s.torn[r.Partition] = &torn{s.writtenTo(r.Partition)}
		}
		s.restore(r.Partition, t.before)
	}
	*t = unended{r.ProducerID, r.ProducerEpoch, r.Offset + 1, s.save(r.Partition)}
}

func (s *State) save(p int32) leaseState {
	t := leaseState{written: s.written[p], owner: s.Owners[p], term: s.terms[p]}
	if p == 0 {
		t.frontier, t.epoch, t.moving, t.born = s.Frontier, s.Epoch, s.Moving, s.born
		t.marks, t.seen, t.topics, t.mover, t.place = s.marks, s.seen, s.topics, s.mover, s.Place
	}
	return t
}

func (s *State) restore(p int32, t leaseState) {
	s.written[p], s.Owners[p], s.terms[p] = t.written, t.owner, t.term
	if p == 0 {
		s.Frontier, s.Epoch, s.Moving, s.born = t.frontier, t.epoch, t.moving, t.born
		s.marks, s.seen, s.topics, s.mover, s.Place = t.marks, t.seen, t.topics, t.mover, t.place
	}
}

// writtenTo returns the topics of a lease with their partitions: what the frontier and the lease's cursor know.
func (s *State) writtenTo(lease int32) map[string]int32 {
	f := Frontier{Topics: s.topics}
	if c := s.written[lease]; c != nil {
		f.Adopt(c.Pins)
	}
	return f.Topics
}

// Discard makes the brokers end, as aborted, what transactions of this lease left open in the topics: it aborts
// one that has a record in each partition. See State.Torn.
//
// Then it commits once more the documents that count. Compaction removes the owner record behind those that do not
// count when there is a newer one, and a view that starts after that could not tell them apart.
func (l *Lease) Discard(ctx context.Context, topics map[string]int32) error {
	if err := l.fail(l.abort(ctx, topics)); err != nil {
		return fmt.Errorf("aborting what a former transaction left open: %w", classify(err))
	}
	var f *Frontier
	if l.Partition == 0 && l.was.Frontier != nil {
		f = new(Frontier)
		*f = *l.was.Frontier
	}
	return l.Commit(ctx, l.Cursor(), f)
}

// abort aborts a transaction that has a record in each partition of the topics.
func (l *Lease) abort(ctx context.Context, topics map[string]int32) error {
	t, err := l.Begin()
	if err != nil {
		return err
	}
	for topic, partitions := range topics {
		for p := range partitions {
			// A compacted topic takes no record without a key.
			r := &kgo.Record{Topic: topic, Partition: p, Key: []byte("aborted")}
			if err := t.Mark(ctx, []*kgo.Record{r}); err != nil {
				return err
			}
		}
	}
	if err := t.Flush(ctx); err != nil {
		return err
	}
	if err := l.awaitPartitions(ctx); err != nil {
		return err
	}
	if err := l.cl.EndTransaction(ctx, kgo.TryAbort); err != nil {
		return err
	}
	l.tx, l.began = nil, false
	return nil
}
