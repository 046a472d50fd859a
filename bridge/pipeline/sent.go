package pipeline

import (
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Sent is a block whose records are with the client. The block can be used again when the brokers have acknowledged all
// of them, which is long before their transaction is committed: memory bounds what is on its way to the brokers, and
// not the size of a transaction (I9).
//
// Done and Abandon may run at the same time: a tenure that ends gives its blocks up while the brokers answer. The first
// of them frees the block. The second does nothing, because the block may already be in use again.
type Sent struct {
	p      *Pipeline
	block  *Block
	recent *Recent
	left   atomic.Int64
	over   atomic.Bool
}

// Unsent returns how much memory the blocks of a lease may hold that the client sends only when it is flushed: those of
// all leases fit, and as much is on its way to them.
func (p *Pipeline) Unsent() int64 { return max(1, p.memory.limit/2/max(1, p.memory.passing.Load())) }

// Send returns the account of a block. Acked or Keep must be called once for each of its records. The sender calls Done
// after its last use of the block.
func (p *Pipeline) Send(b *Block, recent *Recent) *Sent {
	s := &Sent{p: p, block: b, recent: recent}
	s.left.Store(int64(len(b.Records)) + 1)
	return s
}

// Acked counts a record that is acknowledged.
func (s *Sent) Acked(*kgo.Record) { s.Done() }

// Keep counts a record that is acknowledged, and keeps what it was.
func (s *Sent) Keep(r *kgo.Record) {
	s.recent.Keep(r)
	s.Done()
}

// Done counts a record that is acknowledged, or the sender.
func (s *Sent) Done() {
	if s.left.Add(-1) == 0 {
		if b := s.take(); b != nil {
			s.p.Reuse(b)
		}
	}
}

// Abandon gives up the block, if its records are not acknowledged. The garbage collector gets it: a closed client may
// still hold the records.
func (s *Sent) Abandon() {
	if b := s.take(); b != nil {
		s.p.memory.release(b)
	}
}

// take returns the block to the first caller.
func (s *Sent) take() (b *Block) {
	if s.over.CompareAndSwap(false, true) {
		b, s.block = s.block, nil
	}
	return b
}

// Recent has the newest records of a transaction, by time. Acknowledgements fill it, one at a time, and when the
// transaction is committed there are no more of them.
type Recent struct {
	kept [recentRecords]recentRecord // the first n of them, the oldest first
	n    int
}

// Written is a record that the brokers have taken.
type Written struct {
	Topic     string
	Partition int32
	Offset    int64
	Key       string // the begin of it; of Avro, the subject of the event, if headers have it
	Type      string // header ce_type
	Time      time.Time
	Bytes     int // of the value
}

// recentRecord is a Written whose arrays are used again: keeping a record seldom allocates.
type recentRecord struct {
	Written
	key, kind []byte
}

const (
	recentRecords = 8
	// recentKey is how much of a key is kept.
	recentKey = 256
)

// Split returns the records of a block that are not kept, and those that may be the last ones of a transaction.
func (b *Block) Split() (others, last []kgo.Record) {
	at := max(0, len(b.Records)-recentRecords)
	return b.Records[:at], b.Records[at:]
}

// Keep keeps what a record was, in place of the oldest one: brokers acknowledge one partition after the other.
func (l *Recent) Keep(r *kgo.Record) {
	switch {
	case l.n < recentRecords:
		l.n++
	case r.Timestamp.Before(l.kept[0].Time):
		return
	default:
		oldest := l.kept[0]
		copy(l.kept[:], l.kept[1:])
		l.kept[l.n-1] = oldest
	}
	at := l.n - 1
	for ; at > 0 && r.Timestamp.Before(l.kept[at-1].Time); at-- {
		l.kept[at], l.kept[at-1] = l.kept[at-1], l.kept[at]
	}
	w := &l.kept[at]
	w.Written = Written{
		Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, Time: r.Timestamp, Bytes: len(r.Value),
	}
	key, kind := r.Key, []byte(nil)
	for i := range r.Headers {
		switch h := &r.Headers[i]; {
		case h.Key == "ce_type":
			kind = h.Value
		case h.Key == "ce_subject" && len(key) > 0 && key[0] == 0: // Avro's
			key = h.Value
		}
	}
	w.key, w.kind = append(w.key[:0], key[:min(len(key), recentKey)]...), append(w.kind[:0], kind...)
}

// Records returns the records, the newest first.
func (l *Recent) Records() (all []Written) {
	if l == nil {
		return nil
	}
	for i := l.n - 1; i >= 0; i-- {
		r := l.kept[i]
		r.Key, r.Type = string(r.key), string(r.kind)
		all = append(all, r.Written)
	}
	return all
}
