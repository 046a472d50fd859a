package offsets

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/internal/testing/mutation"
)

// Config is what all leases of an instance share.
type Config struct {
	Topic         string           // the offsets topic
	Name          string           // prefix of the transactional ids
	Instance      string           // who we are, in cursors and owner records
	Transactional bool             // exactly once; otherwise an idempotent producer and a cursor after its records
	TxnTimeout    time.Duration    // how long a broker keeps a transaction of a silent owner open
	Client        []kgo.Opt        // brokers, security, compression
	Now           func() time.Time // stamps documents; nothing is decided by it
	Frugal        bool             // few requests while nothing happens: it takes longer to hear of free leases
	// Session is the membership of the group that leases depend on without transactions; nil checks nothing.
	Session *Session
	// Unacknowledged is called when the brokers have not acknowledged records of a lease for longer than Patience, in a
	// goroutine of its own. Ctx ends when they have, or the wait is given up. It may be nil.
	Unacknowledged func(ctx context.Context, lease int32)
	Patience       time.Duration
	// Waiting hears of a wait for the view that took longer than TxnTimeout, and what it waits for. It may be nil.
	Waiting func(what string)
	// Trace hears of each event of a lease, in the goroutine of that lease. It is nil outside of tests.
	Trace func(Event)
}

// Lease is the right to write the records of the shards of one lease, and their cursor.
//
// A Lease belongs to one goroutine. After any error it is useless (the outcome of its last transaction may be unknown):
// Close it and Acquire again. It writes only by its transactions, see Tx.
type Lease struct {
	Partition int32

	cfg  *Config
	view *View
	cl   *kgo.Client
	was  *State // what the topic said after the fence

	tx      *Tx   // open; nil: none is
	spent   error // of the transaction that failed: there is no other
	began   bool  // the client has begun a transaction
	flushed time.Time
	term    int64           // see Cursor.Term
	wave    *wave           // without transactions: what was produced since the last flush
	alive   func() error    // without transactions: whether the lease may still write
	life    context.Context // the same: ends when a connection may not send any more

	promise func(*kgo.Record, error) // made once: Produce must not allocate
	mu      sync.Mutex
	failed  error // first error of a produced record
}

// maxDocument is below the largest request that the client sends.
const maxDocument = 64 << 20

// ErrFenced says that the brokers take nothing more from the lease's producer: another one has its
// transactional id, or they ended its transaction after TxnTimeout. Without transactions it says that another owner has
// acquired the lease, so that a document does not count. It is a normal event.
var ErrFenced = errors.New("the lease's producer is fenced")

// Acquire takes lease p and returns once the view holds everything its former owner committed, and the frontier
// that was the last one after the fence. More are options of the lease's producer.
func Acquire(ctx context.Context, cfg *Config, view *View, p int32, more ...kgo.Opt) (*Lease, error) {
	// The broker decides how large a document may be: the client's own limit of 1 MB would stop a seek over
	// many topics.
	opts := slices.Concat(cfg.Client, []kgo.Opt{kgo.ProducerBatchMaxBytes(maxDocument)}, more)
	opts = append(opts, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	l := &Lease{Partition: p, cfg: cfg, view: view}
	var err error
	if cfg.Transactional {
		opts = append(opts, cfg.transactional(p)...)
	} else {
		opts = append(opts, kgo.ManualFlushing())
		if cfg.Session != nil {
			l.alive = cfg.Session.begin()
			var lapsed context.CancelCauseFunc
			l.life, lapsed = context.WithCancelCause(context.Background())
			if opts, err = guard(opts, l.alive, lapsed); err == nil {
				err = l.alive()
			}
		}
	}
	if err != nil {
		return nil, fmt.Errorf("acquiring lease %d: %w", p, err)
	}
	cl, err := kgo.NewClient(opts...)
	if err != nil {
		return nil, fmt.Errorf("creating the producer of lease %d: %w", p, err)
	}
	l.cl = cl
	if !cfg.Transactional {
		l.wave = newWave(cl)
	}
	l.promise = l.produced
	if err := l.acquire(ctx); err != nil {
		l.trace(Event{Kind: GivesUp, Why: err})
		// A transaction that stays open keeps every reader of the partition waiting, also where ctx is what has ended.
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), abandon)
		defer cancel()
		l.Close(closing)
		return nil, fmt.Errorf("acquiring lease %d: %w", p, classify(err))
	}
	return l, nil
}

// transactional returns the options of the producer of lease p that make it fence the one before it.
func (cfg *Config) transactional(p int32) []kgo.Opt {
	id := fmt.Sprintf("%s-%d", cfg.Name, p)
	if mutation.NoFence {
		id += "-" + cfg.Instance
	}
	return []kgo.Opt{kgo.TransactionalID(id), kgo.TransactionTimeout(cfg.TxnTimeout)}
}

func (l *Lease) acquire(ctx context.Context) error {
	var early *State
	if mutation.ReadFirst {
		early, _, _ = l.view.Get()
	}
	if err := mutation.Gate(ctx, l.Partition); err != nil {
		return err
	}
	mutation.Crash("acquire", "begun")
	l.trace(Event{Kind: Fences})
	// I3: the fence. The first record of a transactional client makes it call InitProducerID; from then on the former
	// owner can commit nothing.
	r, err := l.document(keyOwner, owner{Version: versionOfMoves, Owner: l.cfg.Instance, Time: l.cfg.Now().UTC()})
	if err != nil {
		return err
	}
	if err := l.end(ctx, "acquire", r); err != nil {
		return err
	}
	// I3: then the read. When the view has passed our own record it has every record of the former owner.
	l.term = r.Offset + 1
	if l.was, err = l.readBack(ctx, r); err != nil {
		return err
	}
	// I10: and the frontier that was the last one after the fence. Lease 0 has it by its own record; the
	// others' views may still replay old frontiers, and acting on one would mean to work on a segment that is
	// over, or gone.
	if l.Partition != 0 {
		if l.was, err = l.view.Known(ctx, l.cfg, l.cl, 0); err != nil {
			return err
		}
	}
	if mutation.ReadFirst {
		l.was = early
	}
	mutation.Crash("acquire", "read")
	l.trace(Event{
		Kind: Acquired, Term: l.term, Cursor: l.Cursor(), Frontier: l.was.Frontier, Seen: slices.Clone(l.was.next),
	})
	return nil
}

// State returns what the topic said after the fence.
func (l *Lease) State() *State { return l.was }

// Cursor returns where the former owner left off, for the holder to change.
func (l *Lease) Cursor() *Cursor { return l.was.Cursor(l.Partition) }

// Err returns the first error of a record that was produced since Acquire.
func (l *Lease) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failed
}

// Check returns why the lease may not write any more; with transactions the brokers say so.
func (l *Lease) Check() error {
	if l.alive == nil {
		return nil
	}
	return l.alive()
}

// abandon is how long a failed acquisition waits for the brokers to end its transaction.
const abandon = time.Second

// answers is how long Close waits for the brokers, without transactions. One that takes longer is in trouble,
// and what it got may come late: the header epoch is for that.
const answers = 5 * time.Second

// Close gives the producer up. An open transaction is aborted if ctx allows; if not, the next owner's fence or the
// broker's timeout ends it. The cursor stays.
func (l *Lease) Close(ctx context.Context) {
	mutation.Crash("release", "begun")
	if l.tx != nil {
		l.trace(Event{Kind: Drops})
	}
	if l.began && l.cfg.Transactional {
		// The result does not matter: nothing of an uncommitted transaction is ever visible. Without the first step,
		// the second one could wait without end for a producer ID that is asked for to send the records.
		if l.cl.AbortBufferedRecords(ctx) == nil {
			_ = l.cl.EndTransaction(ctx, kgo.TryAbort)
		}
	}
	if !l.cfg.Transactional {
		// What is on the wire has to be answered before the next owner reads: it would come behind that owner's
		// records.
		answered, cancel := context.WithTimeout(ctx, answers)
		defer cancel()
		_ = l.cl.AbortBufferedRecords(answered)
	}
	l.cl.Close()
	mutation.Crash("release", "done")
}

// classify turns the errors by which brokers say "somebody else has your transactional id" into ErrFenced.
func classify(err error) error {
	for _, fenced := range []error{kerr.ProducerFenced, kerr.InvalidProducerEpoch} {
		if errors.Is(err, fenced) {
			return fmt.Errorf("%w (%w)", ErrFenced, err)
		}
	}
	return err
}
