package offsets

import (
	"context"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Event is something that a lease does. Tests follow the program by them: see Config.Trace.
//
// A document belongs to the lease's owner, who changes it: it must not be used after the call of Trace.
type Event struct {
	Kind     EventKind
	Lease    int32
	Of       *Lease // the acquisition
	Nobody   bool   // the lease is fenced, and nobody is to have it: see Fence
	Term     int64  // of Acquired
	Producer ProducerID
	// Cursor and Frontier are what the topic said after the fence, or the documents of a transaction.
	Cursor   *Cursor
	Frontier *Frontier
	Seen     []int64     // of Acquired: where the view stood in each partition of the topic
	Records  int         // of Commits: all but markers and documents
	Markers  int         // the same
	Last     *kgo.Record // the same: the last document. It has its offset when EndTxn is asked for
	Why      error       // of Doubts and Ends
}

// EventKind is what happens.
type EventKind string

// The kinds of events.
const (
	Fences   EventKind = "fences"   // the former owner: InitProducerID follows
	Acquired EventKind = "acquired" // the cursor is read
	GivesUp  EventKind = "gives up" // an acquisition: who is fenced by it is not known
	Commits  EventKind = "commits"  // the documents follow, then EndTxn
	Reads    EventKind = "reads"    // the commit has been read back
	Drops    EventKind = "drops"    // the lease is closed with an open transaction
	// Of a holder that finds history lost: it looks again behind another fence, or gives up.
	Doubts EventKind = "doubts"
	Ends   EventKind = "ends"
)

// ProducerID names a transaction: brokers with transaction version 2 give each one an epoch of its producer.
type ProducerID struct {
	ID    int64
	Epoch int16
}

// trace reports an event.
func (l *Lease) trace(e Event) {
	if l.cfg.Trace != nil {
		e.Lease, e.Of, e.Nobody = l.Partition, l, l.cfg.Instance == ""
		l.cfg.Trace(e)
	}
}

func (l *Lease) traceCommit(ctx context.Context, t *Tx, c *Cursor, f *Frontier, docs []*kgo.Record) {
	e := Event{Kind: Commits, Cursor: c, Frontier: f, Records: t.records, Markers: t.markers}
	if len(docs) > 0 {
		e.Last = docs[len(docs)-1]
	}
	if l.cfg.Transactional {
		e.Producer.ID, e.Producer.Epoch, _ = l.cl.ProducerID(ctx) // it has one since Acquire
	}
	l.trace(e)
}
