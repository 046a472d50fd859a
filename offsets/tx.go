package offsets

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/internal/crash"
	"blobfeed/internal/testing/mutation"
)

// Tx is the open transaction of a lease: records, and the documents that cover them.
//
// While there is one, the lease writes nothing else. So nobody can commit what is half done: not a failure that is met
// meanwhile, whoever meets it, and not a marker whose frontier is still to be decided. Only Discard aborts one and
// continues. Whoever drops a transaction, or meets an error, closes the lease, which aborts what is open.
//
// Without transactions a Tx has the same shape. Its records are safe before its documents are written (I1).
type Tx struct {
	l                *Lease
	records, markers int // of it
}

// ErrOpen says that the code has begun a transaction while another one was open. It is a mistake of this program, never
// of its surroundings.
var ErrOpen = errors.New("the lease has an open transaction already")

// stopsAtMistakes is whether ErrOpen is a panic: in tests, which then show the place.
var stopsAtMistakes = testing.Testing()

// Begin opens a transaction. The brokers hear of it with its first record.
//
// I1, I6: two transactions at a time would be one to the brokers, and either commit would make both visible. A program
// that tries gets ErrOpen from then on, so that the tenure of the lease ends.
func (l *Lease) Begin() (*Tx, error) {
	if l.spent != nil {
		return nil, fmt.Errorf("the lease's last transaction has failed: %w", l.spent)
	}
	if l.tx != nil {
		if stopsAtMistakes {
			panic(ErrOpen)
		}
		l.spent = ErrOpen
		return nil, ErrOpen
	}
	l.tx = &Tx{l: l}
	return l.tx, nil
}

// Add adds records. A record and what it points to belong to the client until acked is called for it, in another
// goroutine and with its offset: from then on nobody reads it. Other errors than the one that Add returns show in
// Commit, and in Err before that.
func (t *Tx) Add(ctx context.Context, records []kgo.Record, acked func(*kgo.Record)) error {
	promise := func(r *kgo.Record, err error) {
		t.l.produced(r, err)
		if err == nil {
			acked(r)
		}
	}
	t.records += len(records)
	for i := range records {
		if err := t.l.produce(ctx, &records[i], promise); err != nil {
			return t.l.fail(err)
		}
	}
	return nil
}

// Mark adds the markers behind the records.
func (t *Tx) Mark(ctx context.Context, markers []*kgo.Record) error {
	t.markers += len(markers)
	for _, r := range markers {
		if err := t.l.produce(ctx, r, t.l.promise); err != nil {
			return t.l.fail(err)
		}
	}
	return nil
}

// Flush waits until every record is acknowledged.
func (t *Tx) Flush(ctx context.Context) error { return t.l.fail(t.l.flush(ctx)) }

// Commit ends the transaction with the documents that cover its records; either may be nil. When it returns nil,
// records and documents are committed together (I1, I2), and the view has read the documents and counts them. An
// acknowledged commit is not enough: see torn.go and, without transactions, stale.go. Reading back costs little,
// because brokers take no record of the next transaction before they have ended this one.
func (t *Tx) Commit(ctx context.Context, c *Cursor, f *Frontier) error {
	if t.l.spent != nil { // I1: a record is missing that c covers
		return fmt.Errorf("the transaction has failed before: %w", t.l.spent)
	}
	if err := t.l.fail(t.l.commit(ctx, t, c, f)); err != nil {
		return err
	}
	t.l.tx = nil
	return nil
}

// Commit is a transaction of documents alone.
func (l *Lease) Commit(ctx context.Context, c *Cursor, f *Frontier) error {
	t, err := l.Begin()
	if err != nil {
		return err
	}
	return t.Commit(ctx, c, f)
}

// fail remembers an error: the lease begins no other transaction.
func (l *Lease) fail(err error) error {
	if err != nil && l.spent == nil {
		l.spent = err
	}
	return err
}

func (l *Lease) commit(ctx context.Context, t *Tx, c *Cursor, f *Frontier) error {
	var docs []*kgo.Record
	if c != nil {
		c.Version, c.Owner, c.Time, c.Term = versionOf(c.Scan != nil), l.cfg.Instance, l.cfg.Now().UTC(), l.stored()
		r, err := l.document(keyCursor, c)
		if err != nil {
			return err
		}
		docs = append(docs, r)
	}
	if f != nil {
		f.Version, f.Owner, f.Time, f.Term = versionOf(f.Scan.matters(f)), l.cfg.Instance, l.cfg.Now().UTC(), l.stored()
		r, err := l.document(keyFrontier, f)
		if err != nil {
			return err
		}
		docs = append(docs, r)
	}
	step := l.crashPoint(c, f)
	if l.cfg.Trace != nil {
		l.traceCommit(ctx, t, c, f, docs)
	}
	if err := l.end(ctx, step, docs...); err != nil {
		return fmt.Errorf("committing: %w", classify(err))
	}
	var err error
	if len(docs) > 0 {
		_, err = l.readBack(ctx, docs[len(docs)-1])
	}
	mutation.Crash(step, "read")
	if err == nil {
		l.trace(Event{Kind: Reads})
	}
	return err
}

// produce adds a record to the transaction. After a failed record it fails at once: a broker without transactions would
// keep what comes after the failure, out of order.
func (l *Lease) produce(ctx context.Context, r *kgo.Record, promise func(*kgo.Record, error)) error {
	if err := l.Err(); err != nil {
		return err
	}
	if !l.began && l.cfg.Transactional {
		if err := l.begin(ctx); err != nil {
			return fmt.Errorf("beginning a transaction: %w", classify(err))
		}
		l.began = true
	}
	if l.wave != nil {
		if err := l.nextBatch(ctx, r); err != nil {
			return err
		}
	}
	l.cl.Produce(ctx, r, promise)
	return nil
}

// begin begins the client's transaction. The first one needs a producer ID, which brokers refuse while they end the
// transaction of the former owner. BeginTransaction alone would ask for the ID without end: it takes no context, so no
// stop ends it.
func (l *Lease) begin(ctx context.Context) error {
	within, cancel := context.WithTimeout(ctx, l.cfg.TxnTimeout)
	defer cancel()
	_, _, err := l.cl.ProducerID(within)
	switch {
	case err != nil && ctx.Err() == nil && within.Err() != nil:
		return fmt.Errorf("the brokers have given no producer ID within %s: they may still be ending the transaction "+
			"of a former owner", l.cfg.TxnTimeout)
	case err != nil:
		return err
	}
	return l.cl.BeginTransaction()
}

func (l *Lease) produced(r *kgo.Record, err error) {
	if err == nil {
		return
	}
	if errors.Is(err, kerr.MessageTooLarge) && r.Topic == l.cfg.Topic {
		err = fmt.Errorf("%w: it has %d bytes: raise max.message.bytes of the topic", err, len(r.Value))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failed == nil {
		l.failed = fmt.Errorf("writing key %q to partition %d of topic %s: %w", r.Key, r.Partition, r.Topic,
			classify(err))
	}
}

// readBack returns a state that has the last record of a commit. It gives up when the view has not moved for
// TxnTimeout, so that another acquisition, whose owner record ends what the brokers left open, can find out.
func (l *Lease) readBack(ctx context.Context, last *kgo.Record) (*State, error) {
	within, cancel := context.WithCancel(ctx)
	defer cancel()
	stands := time.AfterFunc(l.cfg.TxnTimeout, cancel)
	defer stands.Stop()
	at := int64(-1)
	s, err := l.view.Await(within, func(s *State) bool {
		if next := s.next[l.Partition]; next != at { // a view that is new reads for a while
			at = next
			stands.Reset(l.cfg.TxnTimeout)
		}
		return at > last.Offset
	})
	switch {
	case err != nil && ctx.Err() == nil && within.Err() != nil:
		return nil, fmt.Errorf("reading a commit back from offset %d in partition %d of %s: the view stands at %d: %w",
			last.Offset, l.Partition, l.cfg.Topic, at, context.DeadlineExceeded)
	case err != nil:
		return nil, err
	case s.Term(l.Partition) == l.term:
		return s, nil
	case l.cfg.Transactional: // another owner's record may stand where their end should
		return nil, ErrFenced
	case s.stale[l.Partition] > last.Offset: // another owner's record stands before them, so they do not count
		return nil, ErrFenced
	}
	return s, nil
}

// crashPoint names a transaction by its documents, for package mutation.
func (l *Lease) crashPoint(c *Cursor, f *Frontier) string {
	switch {
	case f != nil && f.Moving:
		return "intent"
	case f != nil && l.view.moving():
		return "move"
	case f != nil && c != nil:
		return "bundle"
	case f != nil:
		return "frontier"
	case c != nil && c.Gap:
		return "gap"
	}
	return "cursor"
}

// Term names this acquisition, as State.Term does. With another one in the state the lease belongs to somebody else.
func (l *Lease) Term() int64 { return l.term }

// stored is the term in documents: only without transactions does anybody judge by it.
func (l *Lease) stored() int64 {
	if l.cfg.Transactional {
		return 0
	}
	return l.term
}

func (l *Lease) document(key string, doc any) (*kgo.Record, error) {
	b, err := json.Marshal(doc)
	if err != nil {
		return nil, fmt.Errorf("encoding the %s: %w", key, err)
	}
	return &kgo.Record{Topic: l.cfg.Topic, Partition: l.Partition, Key: []byte(key), Value: b}, nil
}

// end adds docs and commits. Without transactions the records before them must be safe first (I1): a cursor in the log
// whose records are not there would lose them.
func (l *Lease) end(ctx context.Context, step string, docs ...*kgo.Record) error {
	mutation.Crash(step, "records")
	if !l.cfg.Transactional {
		if err := l.flush(ctx); err != nil {
			return err
		}
		l.flushed = time.Now()
	}
	for _, r := range docs {
		if err := l.produce(ctx, r, l.promise); err != nil {
			return err
		}
	}
	if err := l.flush(ctx); err != nil {
		return err
	}
	l.began = false
	mutation.Crash(step, "flushed")
	if !l.cfg.Transactional {
		return nil
	}
	l.flushed = time.Now()
	if err := l.awaitPartitions(ctx); err != nil {
		return err
	}
	defer l.impatient(ctx)()
	err := l.cl.EndTransaction(ctx, kgo.TryCommit)
	mutation.Crash(step, "ended")
	return err
}

// awaitPartitions waits until kgo knows all partitions that the transaction has records in: by these, EndTransaction
// sees whether there is anything to end, and which partitions the next transaction must name to the coordinator. Up
// to 1.22.2 kgo enters the partitions of a topic that it writes to for the first time after it has handed on
// the first records:
//
//	metadata loop    hands the records on and loses its processor
//	drain loop       writes them; Flush returns
//	EndTransaction   knows no partition, so does nothing, and returns nil
//	metadata loop    enters the partitions
//
// The transaction would stay open until the broker aborts it, TxnTimeout later, and fences us for it. The
// metadata loop holds one lock over both of its steps, and AbortBufferedRecords, for which Flush has left
// nothing to abort, takes that lock.
func (l *Lease) awaitPartitions(ctx context.Context) error { return l.cl.AbortBufferedRecords(ctx) }

// Flushed returns when all records of the last commit were acknowledged: what it took from then on is the commit's own.
func (l *Lease) Flushed() time.Time { return l.flushed }

// flush waits until every record is acknowledged. kgo would commit whatever succeeded, so a failed record must be seen
// here: committing the cursor without it would lose the event (I1).
func (l *Lease) flush(ctx context.Context) error {
	if err := l.Check(); err != nil {
		return err
	}
	if l.life != nil { // kgo would dial without end, and the group may never give the lease to another instance
		flushing, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(l.life, cancel)()
		ctx = flushing
	}
	defer l.impatient(ctx)()
	if err := l.cl.Flush(ctx); err != nil {
		return cmp.Or(l.Check(), err)
	}
	if l.wave != nil {
		l.wave.reset()
	}
	return l.Err()
}

// impatient calls Unacknowledged if done is not called soon. The client repeats what brokers reject for now without a
// word, and without end.
func (l *Lease) impatient(ctx context.Context) (done func()) {
	if l.cfg.Unacknowledged == nil {
		return func() {}
	}
	waiting, cancel := context.WithCancel(ctx)
	late := time.AfterFunc(l.cfg.Patience, crash.Guard(ctx, "wait", func() {
		l.cfg.Unacknowledged(waiting, l.Partition)
	}))
	return func() { late.Stop(); cancel() }
}
