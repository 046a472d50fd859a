package simulation

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"blobfeed/envelope"
	"blobfeed/internal/plain"
	"blobfeed/internal/testing/protocol"
	"blobfeed/offsets"
	"blobfeed/source"
)

// NewTracePlan returns the plan of a seed that is small enough for the model of the protocol to follow what the bridge
// does: a block of events in each of two shards, in each of three segments.
func NewTracePlan(seed uint64) *Plan {
	d := dice{rand.New(rand.NewPCG(seed, 0x72ace))}
	p := &Plan{
		Seed: seed, Traced: true, Brokers: 1, Instances: 2, Leases: 2, Partitions: 2, ExactlyOnce: true,
		Markers: envelope.MarkersInline, SkipGaps: d.chance(50), TxnRecords: 1000,
		Session: 3 * time.Second, TxnTimeout: d.between(4*time.Second, 8*time.Second),
		Shards: 2, Blobs: 50, BlockEvents: 1000, Backlog: protocol.Segments - 1,
		Latency: d.between(0, 100*time.Millisecond),
	}
	if d.chance(40) {
		p.FetchBytes = int32(400 + d.n(2000))
	}
	if seed%4 == 3 {
		p.unfenced(d)
		return p
	}
	if d.chance(30) {
		p.listed(d)
		return p
	}
	if d.chance(50) {
		p.Bundle = int64(10000 + d.n(60000)) // of one segment or two
	}
	if d.chance(20) {
		p.outcast(d)
		return p
	}
	p.add(Step{At: d.between(0, 3*time.Second), Kind: Append, N: traced})
	kinds := []Kind{Pause, Kill, Stop, Cut, Deaf, Lose, Late, Stall, Slow, Fail, Seek, Seek}
	for range d.n(3) {
		s := Step{At: d.between(0, 3*time.Second), Kind: kinds[d.n(len(kinds))], Instance: d.n(p.Instances)}
		s.For = d.between(200*time.Millisecond, 8*time.Second)
		switch s.Kind {
		case Lose, Late, Stall:
			s.N, s.Key = 1+d.n(3), lossy[d.n(len(lossy))]
		case Seek:
			s.Instance, s.For, s.N = -1, 0, d.n(100)
		}
		p.add(s)
	}
	if !slices.ContainsFunc(p.Steps, func(s Step) bool { return s.Kind == Seek }) && d.chance(40) {
		p.Retention = EatsUnread
		for i := range p.Instances { // so that it comes between two requests
			p.add(Step{At: 800 * time.Millisecond, Kind: Slow, Instance: i, For: d.between(time.Second, 6*time.Second)})
		}
		for range 1 + d.n(2) {
			p.add(Step{At: d.between(500*time.Millisecond, 6*time.Second), Kind: Remove, N: 1 + d.n(2)})
		}
		if d.chance(60) {
			p.crumbles(d)
		}
	}
	p.sort()
	return p
}

// crumbles has retention remove blob by blob, while the instances are slow.
func (p *Plan) crumbles(d dice) {
	p.SkipGaps, p.Bundle = d.chance(75), 0
	p.Steps = slices.DeleteFunc(p.Steps, func(s Step) bool { return s.Kind == Slow })
	for i := range p.Instances {
		p.add(Step{At: time.Second, Kind: Slow, Instance: i, For: d.between(time.Second, 6*time.Second)})
	}
	p.add(Step{At: 8 * time.Second, Kind: Roll}) // nothing is mended before
	for k := range p.Steps {
		if s := &p.Steps[k]; s.Kind == Remove {
			s.At, s.For = d.between(time.Second, 3*time.Second), d.between(time.Millisecond, time.Second)
		}
	}
}

// unfenced makes of a plan that is traced one without transactions. Its steps end late, so that what goes wrong lasts.
func (p *Plan) unfenced(d dice) {
	p.ExactlyOnce = false
	if d.chance(50) {
		p.Bundle = int64(10000 + d.n(60000))
	}
	if d.chance(25) {
		p.outcast(d)
		return
	}
	const end = 12 * time.Second
	p.add(Step{At: d.between(0, end), Kind: Append, N: traced})
	p.add(Step{At: end, Kind: Roll}) // nothing is mended before
	kinds := []Kind{Seek, Seek, Pause, Pause, Kill, Kill, Stop, Cut, Deaf, Lose, Late, Stall, Stall, Slow, Fail}
	keys := []kmsg.Key{kmsg.Produce, kmsg.Produce, kmsg.Fetch, kmsg.Heartbeat, kmsg.JoinGroup, kmsg.ListOffsets}
	for range 1 + d.n(4) {
		s := Step{At: d.between(0, end), Kind: kinds[d.n(len(kinds))], Instance: d.n(p.Instances)}
		if d.chance(50) {
			s.At = d.between(0, 3*time.Second) // when most is delivered
		}
		s.For = d.between(200*time.Millisecond, 8*time.Second)
		switch s.Kind {
		case Lose, Late, Stall:
			s.N, s.Key = 1+d.n(3), keys[d.n(len(keys))]
		case Seek:
			s.Instance, s.For, s.N = -1, 0, d.n(100)
			kinds = kinds[1:] // two at most: the model's log is short
		}
		p.add(s)
	}
	p.sort()
}

// outcast plans that the group can't hear one instance for longer than a session, so that it gives its leases to the
// other one. The first one can't hear what that writes, and continues when there are events.
func (p *Plan) outcast(d dice) {
	at, out := d.between(2*time.Second, 4*time.Second), d.n(p.Instances)
	for _, key := range []kmsg.Key{kmsg.Heartbeat, kmsg.Fetch} {
		p.add(Step{At: at, Kind: Stall, Key: key, Instance: out, For: 4 * p.Session})
	}
	p.add(Step{At: at + p.Session + d.between(0, 2*p.Session), Kind: Append, N: traced})
	p.sort()
}

// traced is how many events a segment of a plan that is traced has: enough for each shard to have one.
const traced = 24

// tracer notes what the bridge does, in the order in which the brokers handle it. Nil notes nothing.
type tracer struct {
	*world
	mu       sync.Mutex
	events   []traceEvent
	names    map[time.Duration]string  // of instances, by the transaction timeout that tells their requests apart
	fences   map[owned][]offsets.Event // that are announced, and have not come
	commits  map[offsets.ProducerID]*commit
	readable map[offsets.ProducerID]map[protocol.Block]int // by transaction: events of each block
	marked   map[offsets.ProducerID]map[string]bool        // the same: times that markers promise
	markers  map[offsets.ProducerID]int                    // the same: markers on partition 0, as on each other one
	followed protocol.Trace
	scanned  protocol.ScanTrace
	scan     *scanTracer // of a plan with scans
	unfenced protocol.LeastTrace
	least    *leastTracer // of a plan without transactions
}

// traceEvent is one of the models, or the end of a transaction.
type traceEvent struct {
	protocol.Event
	account *protocol.ScanEvent
	written *written // without transactions
	commit  *commit
	cursor  *offsets.Cursor // of an acquisition
}

// commit is what an owner has asked the brokers for.
type commit struct {
	owned
	id       offsets.ProducerID
	cursor   *offsets.Cursor
	frontier *offsets.Frontier
	last     *kgo.Record
	ended    bool
}

func newTracer(w *world) *tracer {
	t := &tracer{
		world: w, names: map[time.Duration]string{}, fences: map[owned][]offsets.Event{},
		commits:  map[offsets.ProducerID]*commit{},
		readable: map[offsets.ProducerID]map[protocol.Block]int{}, marked: map[offsets.ProducerID]map[string]bool{},
		markers: map[offsets.ProducerID]int{},
	}
	if w.plan.Scans {
		t.scan = newScanTracer(t)
	}
	if !w.plan.ExactlyOnce {
		t.least = newLeastTracer(t)
		w.cluster.ControlKey(int16(kmsg.Produce), func(r kmsg.Request) (kmsg.Response, error, bool) {
			w.cluster.KeepControl()
			t.least.produced(r.(*kmsg.ProduceRequest))
			return nil, nil, false
		})
		return t
	}
	w.cluster.ControlKey(int16(kmsg.InitProducerID), func(r kmsg.Request) (kmsg.Response, error, bool) {
		w.cluster.KeepControl()
		t.initialised(r.(*kmsg.InitProducerIDRequest))
		return nil, nil, false
	})
	w.cluster.ControlKey(int16(kmsg.EndTxn), func(r kmsg.Request) (kmsg.Response, error, bool) {
		w.cluster.KeepControl()
		t.ended(r.(*kmsg.EndTxnRequest))
		return nil, nil, false
	})
	return t
}

// timeout returns the transaction timeout of an instance. In a trace no two have the same: requests do not say who
// sends them.
func (w *world) timeout(instance string) time.Duration {
	t := w.tracer
	if t == nil {
		return w.plan.TxnTimeout
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	unique := w.plan.TxnTimeout.Truncate(time.Second) + time.Duration(len(t.names)+1)*time.Millisecond
	t.names[unique] = instance
	return unique
}

// happens notes what the world does.
func (t *tracer) happens(e protocol.Event) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.events = append(t.events, traceEvent{Event: e})
}

// heard notes what a lease does.
func (w *world) heard(instance string, e offsets.Event) {
	if instance != verb {
		w.whole.trace(instance, e)
	}
	t := w.tracer
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	at := owned{instance, e.Lease}
	switch e.Kind {
	case offsets.Fences:
		t.fences[at] = append(t.fences[at], e)
	case offsets.GivesUp:
		t.fences[at] = slices.DeleteFunc(t.fences[at], func(f offsets.Event) bool { return f.Of == e.Of })
	case offsets.Acquired:
		if e.Nobody || instance == verb {
			return
		}
		seen := [2]int64{e.Seen[0], e.Seen[1]}
		t.events = append(t.events, traceEvent{cursor: copyOf(e.Cursor), Event: protocol.Event{
			Kind: protocol.Acquired, Instance: instance, Lease: int(e.Lease), Seen: seen,
		}})
	case offsets.Commits:
		t.commits[e.Producer] = &commit{
			owned: at, id: e.Producer, cursor: copyOf(e.Cursor), frontier: copyOfFrontier(e.Frontier), last: e.Last,
		}
	case offsets.Ends:
		t.events = append(t.events, traceEvent{Event: protocol.Event{Kind: protocol.Ends, Instance: instance}})
	}
}

func copyOf(c *offsets.Cursor) *offsets.Cursor {
	if c == nil {
		return nil
	}
	d := *c
	d.Shards = maps.Clone(c.Shards)
	if c.Scan != nil {
		l := *c.Scan
		l.Progress = c.Scan.Progress.Clone()
		d.Scan = &l
	}
	return &d
}

func copyOfFrontier(f *offsets.Frontier) *offsets.Frontier {
	if f == nil {
		return nil
	}
	g := *f
	return &g
}

// initialised notes a fence, before the brokers handle it. One that renews its own producer fences nobody.
func (t *tracer) initialised(r *kmsg.InitProducerIDRequest) {
	if r.TransactionalID == nil || r.ProducerID != -1 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	instance := t.names[time.Duration(r.TransactionTimeoutMillis)*time.Millisecond]
	lease, err := strconv.Atoi(strings.Split(strings.TrimPrefix(*r.TransactionalID, name+"-"), "-")[0])
	if err != nil {
		t.fail("a transactional id %q: %v", *r.TransactionalID, err)
	}
	e := protocol.Event{Kind: protocol.Fences, Instance: instance, Lease: lease}
	at := owned{instance, int32(lease)}
	if announced := t.fences[at]; len(announced) > 0 { // else the request is repeated
		e.Nobody, t.fences[at] = announced[0].Nobody, announced[1:]
	}
	if instance == verb {
		e.Kind = protocol.Verb
	}
	t.events = append(t.events, traceEvent{Event: e})
}

// ended notes the end of a transaction, before the brokers handle it.
func (t *tracer) ended(r *kmsg.EndTxnRequest) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.commits[offsets.ProducerID{ID: r.ProducerID, Epoch: r.ProducerEpoch}]
	if !r.Commit || c == nil || c.ended {
		return
	}
	c.ended = true
	t.events = append(t.events, traceEvent{commit: c})
}

// committed notes a record that consumers can read, and reports whether it is one of the state.
func (t *tracer) committed(r *kgo.Record) (state bool) {
	if t == nil {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	id := offsets.ProducerID{ID: r.ProducerID, Epoch: r.ProducerEpoch}
	if t.readable[id] == nil {
		t.readable[id], t.marked[id] = map[protocol.Block]int{}, map[string]bool{}
	}
	if r.Topic == plain.StateTopic(name) {
		return true
	}
	t.scan.committed(id, r)
	for _, h := range r.Headers {
		if r.Key == nil && h.Key == "resolved" {
			t.marked[id][string(h.Value)] = true
			if r.Partition == 0 {
				t.markers[id]++
			}
		}
		if e := t.judge.at[string(h.Value)]; h.Key == "position" && e != nil { // its lock is held
			t.readable[id][blockOf(e)]++
		}
	}
	return false
}

// number is that of a segment in a trace.
func number(s source.Segment) uint8 {
	if s == (source.Segment{}) || s.Time().Before(feedStart) {
		return 0
	}
	return uint8(s.Time().Sub(feedStart)/time.Hour + 1)
}

func blockOf(e *expected) protocol.Block {
	s, err := source.ParseSegment(e.Segment)
	if err != nil {
		panic(err) // the judge has it from the feed
	}
	return protocol.Block{Segment: number(s), Shard: uint8(e.Shard)}
}

// trace returns what the bridge did, or what no transaction may hold.
func (t *tracer) trace(expected []*expected) (protocol.Trace, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	whole := map[protocol.Block]int{}
	for _, e := range expected {
		whole[blockOf(e)]++
	}
	trace := protocol.Trace{Skips: t.plan.SkipGaps, Bundles: t.plan.Bundle > 0}
	var before *offsets.Frontier
	for _, e := range t.events {
		switch c := e.commit; {
		case e.cursor != nil:
			e.Document = cursorOf(e.cursor)
		case c != nil && t.readable[c.id] == nil:
			continue // the brokers refused it
		case c != nil:
			e.Event = protocol.Event{
				Kind: protocol.Commits, Instance: c.instance, Lease: int(c.lease), Markers: t.markers[c.id],
			}
			if c.last != nil {
				e.Offset = c.last.Offset
			}
			for block, n := range t.readable[c.id] {
				if n != whole[block] {
					return trace, fmt.Errorf("%s, lease %d commits %d of the %d events of %v", c.instance, c.lease,
						n, whole[block], block)
				}
				e.Shards = append(e.Shards, block)
			}
			switch {
			case c.frontier != nil:
				e.Document = frontierOf(c.frontier, before)
				e.NoMarkers = len(c.frontier.Topics) == 0 || c.frontier.Resolved == ""
				before = c.frontier
			case c.cursor != nil:
				e.Document = cursorOf(c.cursor)
			}
			if c.instance == verb {
				e.Kind = protocol.Moves
			}
		}
		trace.Events = append(trace.Events, e.Event)
	}
	return trace, nil
}

func cursorOf(c *offsets.Cursor) protocol.Document {
	d := protocol.Document{Epoch: uint8(c.Epoch), Segment: number(c.Segment), Done: c.Done, Gap: c.Gap}
	for shard := range d.Read {
		d.Read[shard] = c.Shards[source.ShardName(shard)] != source.ShardPosition{}
	}
	return d
}

func frontierOf(f, before *offsets.Frontier) protocol.Document {
	d := protocol.Document{
		IsFrontier: true, Epoch: uint8(f.Epoch), Completed: number(f.Completed), Current: number(f.Current),
		Moving: f.Moving, Reset: f.Reset,
	}
	if f.Seek != nil {
		d.Sought, d.Told = true, f.Seek.Told
	}
	if before != nil {
		d.Loses = f.Gaps > before.Gaps || f.Gap != nil && (before.Gap == nil || *f.Gap != *before.Gap)
	}
	return d
}

// follow returns where the bridge does what the model of the protocol does not.
func (t *tracer) follow(expected []*expected) (err error) {
	if t.scan != nil {
		t.scanned = t.scan.trace()
		return protocol.FollowScan(t.scanned)
	}
	if t.least != nil {
		if t.unfenced, err = t.least.trace(expected); err != nil {
			return err
		}
		return protocol.FollowLeast(t.unfenced)
	}
	if t.followed, err = t.trace(expected); err != nil {
		return err
	}
	return protocol.Follow(t.followed)
}
