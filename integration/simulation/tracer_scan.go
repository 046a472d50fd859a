package simulation

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/envelope"
	"blobfeed/internal/history"
	"blobfeed/internal/testing/feedsim"
	"blobfeed/internal/testing/feedsim/account"
	"blobfeed/internal/testing/protocol"
	"blobfeed/offsets"
	"blobfeed/source"
	"blobfeed/source/inventory"
)

// listed makes of a plan that is traced one of an account with two blobs, which are listed before and beside the feed.
func (p *Plan) listed(d dice) {
	p.Scans, p.InitialScan, p.SkipGaps, p.Backlog, p.Partitions = true, true, true, d.n(3), 1+d.n(3)
	for range 4 + d.n(5) {
		p.add(Step{At: d.between(0, 12*time.Second), Kind: Append, N: 1})
	}
	for range 1 + d.n(3) {
		p.add(Step{At: d.between(time.Second, 12*time.Second), Kind: Next})
	}
	p.add(Step{At: d.between(2*time.Second, 8*time.Second), Kind: Scan, Instance: -1, N: 1 + d.n(4)})
	if d.chance(40) { // cancels that one, or begins another
		p.add(Step{At: d.between(2*time.Second, 10*time.Second), Kind: Scan, Instance: -1, N: 5 * d.n(2)})
	}
	kinds := []Kind{Pause, Kill, Stop, Cut, Deaf, Lose, Late, Stall, Slow, Fail}
	for range d.n(3) {
		s := Step{At: d.between(0, 10*time.Second), Kind: kinds[d.n(len(kinds))], Instance: d.n(p.Instances)}
		if s.For = d.between(200*time.Millisecond, 6*time.Second); s.Kind == Lose || s.Kind == Late || s.Kind == Stall {
			s.N, s.Key = 1+d.n(3), lossy[d.n(len(lossy))]
		}
		p.add(s)
	}
	p.sort()
}

// scanTracer notes what becomes of the two blobs of an account, of their events and their records. Nil notes nothing.
type scanTracer struct {
	*tracer
	blobs [2]struct{ container, name string }

	mu        sync.Mutex
	numbers   map[string]uint8 // of changes, by the etag behind them
	times     []int64          // of the changes, in ns
	published [2][]uint8       // by blob: the segments of its events
	lane      [2]int32
	records   map[offsets.ProducerID][]protocol.ScanRecord // by transaction
}

func newScanTracer(t *tracer) *scanTracer {
	s := &scanTracer{tracer: t, numbers: map[string]uint8{}, records: map[offsets.ProducerID][]protocol.ScanRecord{}}
	for b, c := 0, 0; b < len(s.blobs); c++ { // each lease lists one
		if name := fmt.Sprintf("c%d", c); int(offsets.LeaseOf(name, t.plan.Leases)) == b {
			s.blobs[b].container, s.blobs[b].name = name, "blob"
			b++
		}
	}
	return s
}

// create creates the containers.
func (t *scanTracer) create(a *account.Account) {
	for _, b := range t.blobs {
		a.Create(b.container)
	}
}

// happens notes what becomes of the account.
func (t *scanTracer) happens(e protocol.ScanEvent) {
	t.tracer.mu.Lock()
	defer t.tracer.mu.Unlock()
	t.events = append(t.events, traceEvent{account: &e})
}

// changeTraced makes a change of one of two blobs, at times, until there are as many as the model knows.
func (s *storage) changeTraced() {
	n := len(s.was) + 1
	if n > protocol.ScanChanges || s.rng.IntN(3) == 0 {
		return
	}
	t, b := s.traced, s.rng.IntN(2)
	blob := t.blobs[b]
	c := change{path: blob.container + "/" + blob.name, at: s.clock.Load()}
	deletes := s.account.Exists(blob.container, blob.name) && s.rng.IntN(2) == 0
	t.happens(protocol.ScanEvent{Kind: protocol.Changed, Blob: uint8(b), Deleted: deletes}) // before anybody sees it
	t.mu.Lock()
	defer t.mu.Unlock()
	if deletes {
		s.account.Delete(blob.container, blob.name)
	} else {
		c.etag = s.account.Put(blob.container, inventory.Blob{Name: blob.name, Length: int64(n)}).ETag
		t.numbers[c.etag] = uint8(n)
	}
	t.times = append(t.times, c.at)
	s.was = append(s.was, c)
}

// publish notes an event, before it is in the feed.
func (t *scanTracer) publish(e feedsim.Expected) {
	if t == nil || e.Key == "" {
		return
	}
	segment, err := source.ParseSegment(e.Segment)
	if err != nil {
		t.fail("%v", err)
	}
	b := 0
	if t.blobs[1].container == e.Container {
		b = 1
	}
	t.mu.Lock()
	t.published[b] = append(t.published[b], number(segment))
	t.mu.Unlock()
	lease := uint8(e.Shard % t.plan.Leases)
	t.happens(protocol.ScanEvent{Kind: protocol.Published, Blob: uint8(b), Lease: lease})
}

// committed notes a record of a blob.
func (t *scanTracer) committed(id offsets.ProducerID, r *kgo.Record) {
	if t == nil || r.Key == nil {
		return
	}
	var path []string
	var value struct{ After *struct{ Etag string } }
	if json.Unmarshal(r.Key, &path) != nil || json.Unmarshal(r.Value, &value) != nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for b, blob := range t.blobs {
		if path[0] != blob.container+"/"+blob.name {
			continue
		}
		record := protocol.ScanRecord{Blob: uint8(b)}
		record.OfScan = slices.ContainsFunc(r.Headers, func(h kgo.RecordHeader) bool {
			return h.Key == envelope.ScanHeader
		})
		if value.After != nil {
			record.Content = t.numbers[value.After.Etag]
		}
		t.records[id], t.lane[b] = append(t.records[id], record), r.Partition
	}
}

// trace returns what the bridge did.
func (t *scanTracer) trace() protocol.ScanTrace {
	t.tracer.mu.Lock()
	defer t.tracer.mu.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	trace := protocol.ScanTrace{}
	for b, blob := range t.blobs {
		leases := int32(t.plan.Leases)
		trace.Lister[b] = uint8(offsets.LeaseOf(blob.container, t.plan.Leases))
		trace.Sweeper[b] = uint8((offsets.LeaseOf(topicName, t.plan.Leases) + t.lane[b]) % leases)
	}
	for _, e := range t.events {
		switch c := e.commit; {
		case e.account != nil:
			trace.Events = append(trace.Events, *e.account)
		case c == nil || t.readable[c.id] == nil:
		case c.frontier != nil:
			trace.Events = append(trace.Events, t.turned(c))
		case c.cursor != nil:
			trace.Events = append(trace.Events, t.worked(c))
		}
	}
	return trace
}

func (t *scanTracer) turned(c *commit) protocol.ScanEvent {
	f := c.frontier
	e := protocol.ScanEvent{Kind: protocol.Turned, Marks: len(t.marked[c.id]) > 0}
	for b, segments := range t.published {
		for _, s := range segments {
			if s <= number(f.Completed) {
				e.From[b]++
			}
		}
	}
	if s := f.Scan; s != nil {
		e.Scan = protocol.ScanDocument{ID: s.ID, Initial: s.Initial, Sweep: s.Sweep, Done: s.Done,
			Canceled: s.Cancelled, Phase: string(s.Phase), Round: s.Round}
	}
	for resolved := range t.marked[c.id] {
		at, err := history.ParseStored(resolved)
		if err != nil {
			t.fail("%v", err)
		}
		n, _ := slices.BinarySearch(t.times, at.Wall+1)
		e.Marker = uint8(n)
	}
	return e
}

func (t *scanTracer) worked(c *commit) protocol.ScanEvent {
	e := protocol.ScanEvent{Kind: protocol.Worked, Lease: uint8(c.lease), Records: t.records[c.id]}
	if l := c.cursor.Scan; l != nil {
		e.ID, e.Held, e.Over, e.Listed, e.Done = l.ID, l.Held, l.Over, l.Progress.Done(), l.Done
	}
	return e
}
