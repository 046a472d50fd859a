package simulation

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/internal/plain"
	"blobfeed/offsets"
	"blobfeed/source"
)

// whole knows what each transaction holds: its records by what a consumer reads, its documents by what the owner of the
// lease commits. Brokers with transaction version 2 give each transaction an epoch of its producer.
type whole struct {
	mu    sync.Mutex
	txns  map[offsets.ProducerID]*transaction
	stand map[owned]documents
}

// transaction is one of a lease.
type transaction struct {
	records, markers int
	place            string // of the first
	owned            owned
	ends             bool // its owner has asked for its end
	cursor, frontier bool // it holds one that moves
}

// owned is a lease of an instance.
type owned struct {
	instance string
	lease    int32
}

// documents are those of a lease that stand, without what may change in them at any time.
type documents struct{ cursor, frontier string }

func newWhole() *whole {
	return &whole{txns: map[offsets.ProducerID]*transaction{}, stand: map[owned]documents{}}
}

func (w *whole) of(id offsets.ProducerID) *transaction {
	if w.txns[id] == nil {
		w.txns[id] = &transaction{}
	}
	return w.txns[id]
}

// committed counts a record that consumers can read. Dead letters do not count: those of a large piece are committed
// before the cursor moves.
func (w *whole) committed(r *kgo.Record) {
	if r.Topic == deadLetters {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.of(offsets.ProducerID{ID: r.ProducerID, Epoch: r.ProducerEpoch})
	if r.Key == nil || plain.IsMarkerTopic(r.Topic) {
		t.markers++
	} else {
		t.records++
	}
	t.place = cmp.Or(t.place, fmt.Sprintf("%s, partition %d, offset %d", r.Topic, r.Partition, r.Offset))
}

// trace notes the documents of a transaction.
func (w *whole) trace(instance string, e offsets.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	at := owned{instance, e.Lease}
	switch e.Kind {
	case offsets.Acquired:
		w.stand[at] = documents{essential(e.Cursor), gist(e.Frontier)}
	case offsets.Commits:
		t, stands := w.of(e.Producer), w.stand[at]
		t.owned, t.ends = at, true
		if e.Cursor != nil {
			c := essential(e.Cursor)
			t.cursor, stands.cursor = c != stands.cursor, c
		}
		if e.Frontier != nil {
			f := gist(e.Frontier)
			t.frontier, stands.frontier = f != stands.frontier, f
		}
		w.stand[at] = stands
	}
}

// torn returns what is wrong with transactions that are committed: markers without a frontier that moves (I6), records
// without a document that moves (I1). A failure, a count, or a shard more in an open segment is no move.
func (w *whole) torn() (problems []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, t := range w.txns {
		by := fmt.Sprintf("by %s, lease %d", t.owned.instance, t.owned.lease)
		if !t.ends {
			by = "by nobody who asked for its end"
		}
		switch {
		case t.markers > 0 && !t.frontier:
			problems = append(problems, fmt.Sprintf("%s: %d markers are committed %s, and the frontier does not move",
				t.place, t.markers, by))
		case t.records > 0 && !t.frontier && !t.cursor:
			problems = append(problems, fmt.Sprintf("%s: %d records are committed %s, and no document moves",
				t.place, t.records, by))
		}
	}
	slices.Sort(problems)
	return problems
}

// essential is a cursor without what may change in it at any time; nil is one that has no position.
func essential(c *offsets.Cursor) string {
	if c == nil {
		return ""
	}
	e := *c
	e.Version, e.Owner, e.Time, e.Term, e.Resolved, e.Counts = 0, "", time.Time{}, 0, "", offsets.Counts{}
	e.Event, e.Ahead, e.Listed, e.Error, e.Failing = time.Time{}, 0, 0, nil, false
	return text(e)
}

// gist is that of a frontier.
func gist(f *offsets.Frontier) string {
	if f == nil {
		return ""
	}
	g := *f
	g.Version, g.Owner, g.Time, g.Term, g.Base, g.CatchUp = 0, "", time.Time{}, 0, source.Segment{}, nil
	g.Shards, g.Ends, g.OpenSince = nil, time.Time{}, time.Time{}
	return text(g)
}

func text(document any) string {
	b, err := json.Marshal(document)
	if err != nil {
		panic(err) // it has been written
	}
	return string(b)
}
